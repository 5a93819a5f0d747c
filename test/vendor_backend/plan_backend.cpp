// A backend that takes the way through plans as far as this machine has what it needs: kernels are
// planned and printed for CUDA, and the window then runs by library calls, through a launcher of
// its own.
#include <torch_lazy/backend/backend_library.h>
#include <torch_lazy/codegen/printer.h>
#include <torch_lazy/ir/node_operator.h>
#include <torch_lazy/passes/pipeline.h>
#include <torch_lazy/plan/executor.h>
#include <torch_lazy/plan/library_plan.h>
#include <torch_lazy/plan/make_plan.h>

#include <cstdio>
#include <utility>

namespace {

using namespace torch_lazy;

class CountingLauncher final : public Launcher {
 public:
  CountingLauncher() : Launcher(c10::kCPU) {}
  void launch(const KernelStep& kernel, c10::ArrayRef<void*> pointers) const override {
    Launcher::launch(kernel, pointers);
  }
};

class PlanBackend final : public Backend {
 public:
  std::string device_name() const override { return "Planned"; }

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    const CoreGraph core = core_graph_of(*graph, options.inputs);
    const Plan plan = make_plan(core, options.inputs, {.lanes = 1});
    for (const PlanStep& step : plan.steps)
      if (const auto* kernel = std::get_if<KernelStep>(&step.action))
        std::printf("kernel %s\n",
                    codegen::print_kernel(kernel->lowered.kernel, {codegen::Target::Kind::kCuda, 1})
                        .entry.c_str());
    for (const torch::jit::Node* node : graph->nodes())
      if (find_operator(node))
        std::printf("operator %s\n", operator_of(node).operator_name().name.c_str());
    std::fflush(stdout);
    return std::make_shared<PlanExecutable>(library_plan(*graph, c10::kCPU, options.verify),
                                            std::make_unique<CountingLauncher>());
  }
};

}  // namespace

TORCH_LAZY_BACKEND("plans", PlanBackend);
