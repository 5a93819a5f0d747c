#include "backend/operators/operator_backend.h"

#include "base/config.h"
#include "base/debug.h"
#include "passes/pipeline.h"
#include "plan/executor.h"
#include "plan/make_plan.h"

namespace torch_lazy {

std::shared_ptr<Executable> OperatorBackend::compile(std::shared_ptr<torch::jit::Graph> graph,
                                                     const CompileOptions& options) {
  PlanOptions wanted;
  wanted.verify = options.verify;
  wanted.device = options.device;
  wanted.operators = &operators_;
  Plan plan = make_plan(core_graph_of(*graph, options.inputs), options.inputs, wanted);
  if (config().debug >= kDebugPasses) debug_print("plan\n" + to_string(plan));
  return std::make_shared<PlanExecutable>(std::move(plan),
                                          std::make_unique<Launcher>(options.device));
}

}  // namespace torch_lazy
