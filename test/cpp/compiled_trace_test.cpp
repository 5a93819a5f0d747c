// What a backend is told of the windows that it compiles, and how often it is asked.

#include "runtime/compiled_trace.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include "backend/reference/reference_backend.h"
#include "backend/registry.h"
#include "base/config.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::TapeBuilder;

std::vector<CompileOptions>& asked() {
  static std::vector<CompileOptions> options;
  return options;
}

class NothingToRun final : public Executable {
 public:
  RunResult run(c10::ArrayRef<at::Tensor>) override { return {}; }
};

// Notes the options of every compile.
class NotingBackend final : public Backend {
 public:
  std::string device_name() const override { return "none"; }
  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph>,
                                      const CompileOptions& options) override {
    asked().push_back(options);
    return std::make_shared<NothingToRun>();
  }
};

// Other tests expect the reference backend wherever anything is registered.
class CompiledTraceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (registered_backends().empty()) register_reference_backend();
    register_backend(
        "noting", []() -> std::unique_ptr<Backend> { return std::make_unique<NotingBackend>(); });
  }
  void SetUp() override {
    asked().clear();
    before_ = backend_name();
    set_backend_name("noting");
  }
  void TearDown() override { set_backend_name(before_); }

 private:
  std::string before_;
};

// A window of its own for each number of elements, so that no test finds another's executable.
void compile_window(int64_t elements, bool deterministic) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({elements}));
  const Handle y = window.call("aten::exp", "", {x})[0];
  std::make_shared<CompiledTrace>(window.tape.prefix(1), DynamicScalars(), window.live({y}),
                                  TraceConditions{c10::kCPU, deterministic})
      ->compile();
}

TEST_F(CompiledTraceTest, TheBackendIsToldWhetherDeterministicAlgorithmsWereAskedFor) {
  compile_window(2, true);
  compile_window(3, false);

  ASSERT_EQ(asked().size(), 2u);
  EXPECT_TRUE(asked()[0].deterministic);
  EXPECT_FALSE(asked()[1].deterministic);
}

TEST_F(CompiledTraceTest, EqualGraphsWithEqualOptionsAreCompiledOnce) {
  compile_window(4, true);
  compile_window(4, true);

  EXPECT_EQ(asked().size(), 1u);
}

TEST_F(CompiledTraceTest, ADeterministicWindowGetsAnExecutableOfItsOwn) {
  compile_window(5, false);
  compile_window(5, true);

  EXPECT_EQ(asked().size(), 2u);
}

}  // namespace
}  // namespace torch_lazy
