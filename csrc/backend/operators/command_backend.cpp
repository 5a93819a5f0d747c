#include "backend/operators/command_backend.h"

#include "base/config.h"
#include "base/debug.h"
#include "offload/mirrored_storage.h"
#include "passes/pipeline.h"
#include "plan/executor.h"
#include "plan/make_plan.h"

namespace torch_lazy {
namespace {

// Their bytes move once, and not with every run.
void keep_constants_on_device(Plan& plan, c10::Device device) {
  for (PlanStep& step : plan.steps) {
    auto* const constant = std::get_if<ConstantStep>(&step.action);
    if (!constant) continue;
    constant->value = constant->value.to(device);
    DeviceAddresses().of(constant->value, Access::kRead, "a constant");
  }
}

}  // namespace

std::shared_ptr<Executable> CommandBackend::compile_commands(const torch::jit::Graph& graph,
                                                             const CompileOptions& options,
                                                             const GraphCompiler* graphs) const {
  PlanOptions wanted;
  wanted.verify = options.verify;
  wanted.device = options.device;
  wanted.operators = &operators_;
  wanted.graphs = graphs;
  Plan plan = make_plan(core_graph_of(graph, options.inputs), options.inputs, wanted);
  if (runtime_) keep_constants_on_device(plan, options.device);
  if (config().debug >= kDebugPasses) debug_print("plan\n" + to_string(plan));
  return std::make_shared<PlanExecutable>(std::move(plan),
                                          std::make_unique<Launcher>(options.device));
}

}  // namespace torch_lazy
