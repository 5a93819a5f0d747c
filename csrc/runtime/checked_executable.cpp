#include "runtime/checked_executable.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/ir/ir.h>

#include <exception>
#include <sstream>
#include <utility>

#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

bool has_memory(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return false;
  const size_t bytes = at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.itemsize(), size_t(tensor.storage_offset()));
  return bytes == 0 || (tensor.storage().nbytes() >= bytes && tensor.storage().data() != nullptr);
}

class Checks {
 public:
  Checks(ExpectedOutputs expected, std::string backend)
      : expected_(std::move(expected)), backend_(std::move(backend)) {}

  template <typename Run>
  RunResult checked(const Run& run) const {
    RunResult result = below(run);
    expected_.check(result, backend_);
    return result;
  }

  template <typename Run>
  auto below(const Run& run) const {
    const StepThreadState state;
    try {
      return run();
    } catch (const std::exception&) {
      throw;
    } catch (...) {  // nobody above could say what it is
      TORCH_CHECK(false, "backend '", backend_, "' raised something that is no std::exception");
    }
  }

 private:
  const ExpectedOutputs expected_;
  const std::string backend_;
};

class CheckedRun final : public StagedRun {
 public:
  CheckedRun(std::unique_ptr<StagedRun> run, const Checks& checks)
      : run_(std::move(run)), checks_(checks) {}

  bool advance(size_t nodes, c10::ArrayRef<at::Tensor> inputs) override {
    return checks_.below([&] { return run_->advance(nodes, inputs); });
  }
  RunResult finish(c10::ArrayRef<at::Tensor> inputs) override {
    return checks_.checked([&] { return run_->finish(inputs); });
  }

 private:
  const std::unique_ptr<StagedRun> run_;
  const Checks& checks_;
};

class CheckedExecutable final : public Executable {
 public:
  CheckedExecutable(std::shared_ptr<Executable> executable, Checks checks)
      : executable_(std::move(executable)), checks_(std::move(checks)) {}

  RunResult run(c10::ArrayRef<at::Tensor> inputs) override {
    return checks_.checked([&] { return executable_->run(inputs); });
  }
  RunResult run_timed(c10::ArrayRef<at::Tensor> inputs, std::vector<StepTime>& times) override {
    return checks_.checked([&] { return executable_->run_timed(inputs, times); });
  }
  std::unique_ptr<StagedRun> begin_run() override {
    std::unique_ptr<StagedRun> run = checks_.below([&] { return executable_->begin_run(); });
    return run ? std::make_unique<CheckedRun>(std::move(run), checks_) : nullptr;
  }
  bool is_concurrent() const override { return executable_->is_concurrent(); }

 private:
  const std::shared_ptr<Executable> executable_;
  const Checks checks_;
};

}  // namespace

ExpectedOutputs::ExpectedOutputs(const torch::jit::Graph& graph) {
  for (const torch::jit::Node* node : graph.nodes()) {
    static_cast<void>(node);
    ++nodes_;
  }
  for (const torch::jit::Value* value : graph.outputs()) {
    const auto type = value->type()->expect<c10::TensorType>();
    outputs_.push_back({type->device().value(), type->scalarType().value(),
                        type->sizes().concrete_sizes().value(),
                        type->strides().concrete_sizes().value()});
  }
}

void ExpectedOutputs::check(const RunResult& result, const std::string& backend) const {
  TORCH_CHECK(result.outputs.size() == outputs_.size(), "backend '", backend, "' returned ",
              result.outputs.size(), " outputs of a window that has ", outputs_.size(),
              ": this is an error of the backend, and nothing of the window is used");
  TORCH_CHECK(
      !result.failure || (result.failure->error && result.failure->operation < nodes_), "backend '",
      backend, "' reported a failure ",
      result.failure->error ? "of an operation that the window does not have" : "without its error",
      ": this is an error of the backend, and nothing of the window is used");
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (result.outputs[i].defined() || !result.failure) check_output(i, result.outputs[i], backend);
}

void ExpectedOutputs::check_output(size_t index, const at::Tensor& output,
                                   const std::string& backend) const {
  const Output& expected = outputs_[index];
  if (output.defined() && output.device().type() == expected.device.type() &&
      output.scalar_type() == expected.dtype && output.sizes() == expected.sizes &&
      output.strides() == expected.strides && output.storage_offset() == 0 && has_memory(output))
      [[likely]]
    return;
  std::ostringstream found;
  if (!output.defined())
    found << "nothing";
  else if (!output.has_storage())
    found << "a tensor without storage";
  else
    found << output.scalar_type() << ' ' << output.sizes() << " with strides " << output.strides()
          << " on " << output.device() << " in a storage of " << output.storage().nbytes()
          << " bytes from element " << output.storage_offset()
          << (output.storage().data() == nullptr ? " at no address" : "");
  TORCH_CHECK(false, "backend '", backend, "' returned as output ", index, " of ", outputs_.size(),
              ' ', found.str(), "; recorded was ", expected.dtype, ' ',
              c10::IntArrayRef(expected.sizes), " with strides ",
              c10::IntArrayRef(expected.strides), " on ", expected.device,
              ": this is an error of the backend, and nothing of the window is used");
}

std::shared_ptr<Executable> checked_executable(std::shared_ptr<Executable> executable,
                                               ExpectedOutputs expected, std::string backend) {
  return std::make_shared<CheckedExecutable>(std::move(executable),
                                             Checks(std::move(expected), std::move(backend)));
}

}  // namespace torch_lazy
