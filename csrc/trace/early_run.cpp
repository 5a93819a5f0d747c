#include "trace/early_run.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "base/metrics.h"
#include "profile/running_window.h"
#include "tape/operator_warnings.h"
#include "trace/number_input.h"

namespace torch_lazy {
namespace {

// The nodes of the graph that the tape's operations are.
size_t known_nodes(const WindowGraph& graph, const Tape& tape) {
  const auto& operations = graph.operations;
  return size_t(std::lower_bound(operations.begin(), operations.end(), tape.size()) -
                operations.begin());
}

// While it lives, warnings of this thread are kept and not given.
class KeepWarnings final : public c10::WarningHandler {
 public:
  explicit KeepWarnings(std::vector<c10::Warning>& into) : into_(into), guard_(this) {}
  void process(const c10::Warning& warning) override { into_.push_back(warning); }

 private:
  std::vector<c10::Warning>& into_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace

std::unique_ptr<EarlyRun> EarlyRun::begin(const std::shared_ptr<const Version>& version,
                                          EarlyThread& thread, const GlobalState& state,
                                          std::optional<c10::Stream> stream) {
  std::unique_ptr<StagedRun> run = version->executable->begin_run();
  if (!run) return nullptr;
  return std::unique_ptr<EarlyRun>(new EarlyRun(version, std::move(run), thread, state, stream));
}

EarlyRun::EarlyRun(const std::shared_ptr<const Version>& version, std::unique_ptr<StagedRun> run,
                   EarlyThread& thread, const GlobalState& state, std::optional<c10::Stream> stream)
    : version_(version),
      thread_(thread),
      state_(state),
      stream_(stream),
      numbers_(version->graph.numbers.size()),
      run_(std::move(run)),
      inputs_(version->graph.inputs.size() + numbers_.size()) {}

void EarlyRun::tell(const Tape& tape, c10::ArrayRef<at::Tensor> inputs) {
  const WindowGraph& graph = version_->graph;
  Recorded recorded;
  recorded.nodes = known_nodes(graph, tape);
  for (; told_inputs_ < std::min(inputs.size(), graph.inputs.size()); ++told_inputs_)
    recorded.inputs.emplace_back(told_inputs_, inputs[told_inputs_]);
  for (; told_numbers_ < numbers_.size(); ++told_numbers_) {
    const uint32_t word = graph.numbers[told_numbers_];
    if (word >= tape.all_words().size()) break;
    double& number = numbers_[told_numbers_];
    std::memcpy(&number, &tape.all_words()[word], sizeof number);
    recorded.inputs.emplace_back(graph.inputs.size() + told_numbers_, number_input(number));
  }
  const c10::ArrayRef<Tape::Entry> entries = tape.entries().slice(told_operations_);
  recorded.entries.assign(entries.begin(), entries.end());
  told_operations_ = tape.size();
  thread_.post([this, recorded = std::move(recorded)] { submit(recorded); });
}

// The settings are looked at again behind it: the program may change one at any time. One that it
// changes and puts back within a task, with no operation between, is not noticed.
void EarlyRun::submit(const Recorded& recorded) noexcept {
  if (spoiled_) return;
  const auto start = std::chrono::steady_clock::now();
  try {
    for (const auto& [index, input] : recorded.inputs) inputs_[index] = input;
    entries_.insert(entries_.end(), recorded.entries.begin(), recorded.entries.end());
    if (!state_.unchanged_in_process()) return;
    const RunningWindow running(entries_, version_->graph.operations, /*shown=*/false);
    const KeepWarnings kept(said_);
    const SilenceRememberedWarnings silence;
    const c10::OptionalStreamGuard stream(stream_);
    begun_ |= version_->alone([&] { return run_->advance(recorded.nodes, inputs_); });
    spoiled_ = !state_.unchanged_in_process();
  } catch (...) {  // the window runs when it is complete, and may fail then
    begun_ = spoiled_ = true;
  }
  increment(metrics().run_ns,
            std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

bool EarlyRun::wait() {
  return thread_.wait() && !spoiled_;
}

bool EarlyRun::cancel() {
  return thread_.cancel();
}

RunResult EarlyRun::finish(c10::ArrayRef<at::Tensor> inputs) {
  for (const c10::Warning& warning : said_) c10::warn(warning);
  return version_->alone([&] { return run_->finish(inputs); });
}

}  // namespace torch_lazy
