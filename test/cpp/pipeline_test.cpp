// What happens where a pass breaks the form of the graph.

#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/reference/reference_backend.h"
#include "backend/registry.h"
#include "base/config.h"
#include "base/metrics.h"
#include "base/warn.h"
#include "runtime/compiled_trace.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::TapeBuilder;

constexpr const char* kComplaint =
    "the pass 'of the backend' broke the graph: output %in0 is no node's own memory";

// A pass that breaks the form: outputs are made by nodes.
std::shared_ptr<torch::jit::Graph> return_an_input(std::shared_ptr<torch::jit::Graph> graph) {
  graph->registerOutput(graph->inputs()[0]);
  return graph;
}

// y = exp(x), of as many elements.
struct ExpWindow {
  explicit ExpWindow(int64_t elements) : x(builder.input(at::ones({elements}))) {
    y = builder.call("aten::exp", "", {x})[0];
  }

  TapeBuilder builder;
  Handle x, y;
};

std::string complaint_about_the_broken_pass() {
  const ExpWindow window(4);
  const WindowGraph graph = cpu_graph(window.builder.tape, window.builder.live({window.y}));
  try {
    core_graph_of(*graph.graph, {{.storage_bytes = 16}}, return_an_input);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "none";
}

// Restores the setting that all tests run with.
class Pipeline : public ::testing::Test {
 protected:
  void TearDown() override { config().verify_passes = true; }
};

TEST_F(Pipeline, NamesThePassThatBrokeTheGraph) {
  EXPECT_EQ(complaint_about_the_broken_pass(), kComplaint);
}

TEST_F(Pipeline, VerifiesNothingWithoutTheSettingOrDebugOutput) {
  config().verify_passes = false;
  EXPECT_EQ(complaint_about_the_broken_pass(), "none");
}

class BackendWithABrokenPass final : public Backend {
 public:
  std::string device_name() const override { return "none"; }
  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    core_graph_of(*graph, options.inputs, return_an_input);
    ADD_FAILURE() << "the broken pass was not found";
    return nullptr;
  }
};

std::string& warning() {
  static std::string text;
  return text;
}

TEST_F(Pipeline, AWindowThatAPassBreaksRunsNodeByNodeIsCountedAndNamed) {
  if (registered_backends().empty()) register_reference_backend();
  register_backend("broken", []() -> std::unique_ptr<Backend> {
    return std::make_unique<BackendWithABrokenPass>();
  });
  const std::string before = backend_name();
  set_backend_name("broken");
  metrics().fallbacks.reset();
  set_warning_sink([](const std::string& message) { warning() = message; });

  const ExpWindow window(7);
  const auto trace =
      std::make_shared<CompiledTrace>(window.builder.tape.prefix(1), DynamicScalars(),
                                      window.builder.live({window.y}), TraceConditions());
  trace->compile();

  set_warning_sink(nullptr);
  set_backend_name(before);
  EXPECT_EQ(metrics().fallbacks.counts().at("window not compiled"), 1);
  EXPECT_NE(warning().find(kComplaint), std::string::npos) << warning();
  ASSERT_NE(trace->version(), nullptr);
  const std::vector<at::Tensor> inputs = window.builder.inputs();
  const RunResult result = trace->version()->executable->run(inputs);
  EXPECT_TRUE(result.outputs.at(0).equal(window.y.tensor));
}

}  // namespace
}  // namespace torch_lazy
