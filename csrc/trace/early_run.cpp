#include "trace/early_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/number_input.h"

namespace torch_lazy {
namespace {

// The nodes of the graph that the tape's operations are.
size_t known_nodes(const WindowGraph& graph, const Tape& tape) {
  const auto& operations = graph.operations;
  return size_t(std::lower_bound(operations.begin(), operations.end(), tape.size()) -
                operations.begin());
}

}  // namespace

std::unique_ptr<EarlyRun> EarlyRun::begin(const std::shared_ptr<const Version>& version) {
  std::unique_ptr<StagedRun> run = version->executable->begin_run();
  if (!run) return nullptr;
  return std::unique_ptr<EarlyRun>(new EarlyRun(version, std::move(run)));
}

EarlyRun::EarlyRun(const std::shared_ptr<const Version>& version, std::unique_ptr<StagedRun> run)
    : version_(version),
      run_(std::move(run)),
      numbers_(version->graph.numbers.size()),
      inputs_(version->graph.inputs.size() + numbers_.size()) {}

void EarlyRun::advance(const Tape& tape, c10::ArrayRef<at::Tensor> inputs) {
  const WindowGraph& graph = version_->graph;
  for (size_t i = 0; i < std::min(inputs.size(), graph.inputs.size()); ++i)
    if (!inputs_[i].defined()) inputs_[i] = inputs[i];
  for (size_t i = 0; i < numbers_.size(); ++i) {
    at::Tensor& number = inputs_[graph.inputs.size() + i];
    if (number.defined() || graph.numbers[i] >= tape.all_words().size()) continue;
    std::memcpy(&numbers_[i], &tape.all_words()[graph.numbers[i]], sizeof(double));
    number = number_input(numbers_[i]);
  }
  begun_ |= version_->alone([&] { return run_->advance(known_nodes(graph, tape), inputs_); });
}

RunResult EarlyRun::finish(c10::ArrayRef<at::Tensor> inputs) {
  return version_->alone([&] { return run_->finish(inputs); });
}

}  // namespace torch_lazy
