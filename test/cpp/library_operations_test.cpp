// Operations that a compile is asked to leave to ATen, and what steps tell of operations.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "ir/node_operator.h"
#include "passes/pipeline.h"
#include "plan/executor.h"
#include "plan/library_plan.h"
#include "plan/make_plan.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::TapeBuilder;
using Operations = std::vector<int64_t>;

// y = gelu(x) * x, of 16 elements.
struct LibraryWindow {
  LibraryWindow() {
    const auto x = builder.input(at::randn({16}));
    const auto gelu = builder.call("aten::gelu", "", {x, "none"})[0];
    const auto y = builder.call("aten::mul", "Tensor", {gelu, x})[0];
    graph = cpu_graph(builder.tape, builder.live({y}));
  }
  int64_t index_of(const std::string& name) const {
    const auto nodes = graph.graph->nodes();
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const auto* node) {
      return find_operator(node) && operator_name(node) == name;
    });
    return std::distance(nodes.begin(), found);
  }
  CoreGraph core(const Operations& library_operations = {}) const {
    return core_graph_of(*graph.graph, inputs, {}, library_operations);
  }

  TapeBuilder builder;
  WindowGraph graph;
  const std::vector<GraphInput> inputs{{.storage_bytes = 64}};
};

std::vector<std::string> library_calls(const CoreGraph& graph) {
  std::vector<std::string> names;
  for (const CoreNode& node : graph.nodes)
    if (node.kind == CoreKind::kLibrary) names.push_back(operator_name(node.node));
  return names;
}

TEST(LibraryOperations, AreTakenApartUnlessTheyAreNamed) {
  EXPECT_TRUE(library_calls(LibraryWindow().core()).empty());
}

TEST(LibraryOperations, StayWholeAndOthersDoNot) {
  const LibraryWindow window;

  const CoreGraph graph = window.core({window.index_of("aten::gelu")});

  EXPECT_EQ(library_calls(graph), std::vector<std::string>{"aten::gelu"});
}

TEST(LibraryOperations, MayBeOnesThatAreCoreOperators) {
  const LibraryWindow window;

  const CoreGraph graph = window.core({window.index_of("aten::mul.Tensor")});

  EXPECT_EQ(library_calls(graph), std::vector<std::string>{"aten::mul.Tensor"});
}

TEST(StepsOfAPlan, AKernelTellsAllOperationsThatItDoes) {
  const LibraryWindow window;

  const Plan plan = make_plan(window.core(), window.inputs, {});

  const auto kernel = std::ranges::find_if(plan.steps, [](const PlanStep& step) {
    return std::holds_alternative<KernelStep>(step.action);
  });
  ASSERT_NE(kernel, plan.steps.end());
  EXPECT_EQ(kernel->operations,
            (Operations{window.index_of("aten::gelu"), window.index_of("aten::mul.Tensor")}));
}

TEST(StepsOfAPlan, ATimedRunTellsTheOperationOfEachLibraryCall) {
  const LibraryWindow window;
  PlanExecutable executable(library_plan(*window.graph.graph, c10::kCPU, false),
                            std::make_unique<Launcher>(c10::kCPU));
  std::vector<StepTime> times;

  const RunResult result = executable.run_timed(window.builder.inputs(), times);

  ASSERT_FALSE(result.failure);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].operations.vec(), Operations{window.index_of("aten::gelu")});
  EXPECT_EQ(times[1].operations.vec(), Operations{window.index_of("aten::mul.Tensor")});
}

}  // namespace
}  // namespace torch_lazy
