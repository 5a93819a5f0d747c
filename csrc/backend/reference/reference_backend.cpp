#include "backend/reference/reference_backend.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/alias.h>

#include "backend/host_backend.h"
#include "backend/registry.h"
#include "ir/node_operator.h"
#include "ir/print.h"
#include "ops/thread_state.h"
#include "plan/steps_from_graph.h"

namespace torch_lazy {
namespace {

const c10::Device kDevice{c10::kCPU};

// Graph inputs have no conj and neg bits: where they matter the graph has a node that sets them.
at::Tensor plain(const at::Tensor& tensor) {
  if (!tensor.is_conj() && !tensor.is_neg()) return tensor;
  const StepThreadState state;
  at::Tensor alias = at::alias(tensor);
  alias._set_conj(false);
  alias._set_neg(false);
  return alias;
}

class ReferenceExecutable final : public Executable {
 public:
  ReferenceExecutable(std::shared_ptr<torch::jit::Graph> graph, const CompileOptions& options)
      : graph_(std::move(graph)), plan_(steps_from_graph(*graph_, kDevice)) {
    plan_releases(plan_.steps, plan_.outputs);
    if (options.verify)
      for (const Step& step : plan_.steps) {
        checked_.push_back({step});
        checked_.back()[0].released.clear();  // after the check
      }
  }

  RunResult run(const RunArguments& arguments) override {
    TORCH_CHECK(arguments.inputs.size() == plan_.inputs.size(), "the window takes ",
                plan_.inputs.size(), " inputs, it was given ", arguments.inputs.size());
    Values values(plan_.slots);
    for (size_t i = 0; i < plan_.inputs.size(); ++i)
      values[plan_.inputs[i]] = plain(arguments.inputs[i]);
    RunResult result;
    result.failure = checked_.empty() ? run_steps(plan_.steps, values, kDevice) : verify(values);
    if (result.failure) result.failure->operation = plan_.nodes[result.failure->operation];
    for (const uint32_t slot : plan_.outputs) result.outputs.push_back(values[slot]);
    return result;
  }

 private:
  std::optional<RunFailure> verify(Values& values) const {
    for (size_t i = 0; i < checked_.size(); ++i) {
      if (auto failure = run_steps(checked_[i], values, kDevice))
        return RunFailure{i, failure->error};
      try {
        check(i, values);
      } catch (...) {
        return RunFailure{i, std::current_exception()};
      }
      for (const uint32_t slot : plan_.steps[i].released) values[slot].reset();
    }
    return std::nullopt;
  }

  // Raises unless the values that the step made are what the graph says.
  void check(size_t index, const Values& values) const {
    const Step& step = plan_.steps[index];
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const at::Tensor& made = values[size_t(step.outputs[i])];
      const torch::jit::Value& value = *plan_.makes[index][i];
      const auto& type = value.type()->expectRef<c10::TensorType>();
      const bool as_typed = !type.isComplete()
                                ? !made.defined()
                                : made.defined() && *type.scalarType() == made.scalar_type() &&
                                      made.sizes() == *type.sizes().concrete_sizes() &&
                                      made.strides() == *type.strides().concrete_sizes();
      TORCH_CHECK(as_typed, step.op->name, " made ", describe(made), " for %", value.debugName(),
                  ", which was ", type, " when it was recorded at ", recorded_at(*value.node()));
    }
  }

  const std::shared_ptr<torch::jit::Graph> graph_;  // `plan_` points into it
  GraphSteps plan_;
  std::vector<std::vector<Step>> checked_;  // each step by itself; empty unless verifying
};

class ReferenceBackend final : public HostBackend {
 public:
  ReferenceBackend() : HostBackend("interpreter", "CPU, node by node") {}

  std::unique_ptr<CompileHandle> compile(std::shared_ptr<torch::jit::Graph> graph,
                                         const CompileOptions& options) override {
    return compiled(std::make_shared<ReferenceExecutable>(std::move(graph), options));
  }
};

}  // namespace

void register_reference_backend() {
  register_backend("interpreter", []() -> std::unique_ptr<Backend> {
    return std::make_unique<ReferenceBackend>();
  });
}

}  // namespace torch_lazy
