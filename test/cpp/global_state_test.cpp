// What a global state notices, and that a scoped one leaves no trace.

#include "trace/global_state.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace torch_lazy {
namespace {

struct GlobalSetting {
  const char* name;
  std::function<void(at::Context&, bool)> set;
  bool usual;
};

// Every one through the setter that the Python function of the same meaning calls.
const std::vector<GlobalSetting>& all_global_settings() {
  static const std::vector<GlobalSetting> all = {
      {"deterministic", [](auto& c, bool on) { c.setDeterministicAlgorithms(on, false); }, false},
      {"warn_only", [](auto& c, bool on) { c.setDeterministicAlgorithms(on, on); }, false},
      {"fill", [](auto& c, bool on) { c.setDeterministicFillUninitializedMemory(on); }, true},
      {"cudnn", [](auto& c, bool on) { c.setUserEnabledCuDNN(on); }, true},
      {"cudnn_benchmark", [](auto& c, bool on) { c.setBenchmarkCuDNN(on); }, false},
      {"cudnn_benchmark_limit", [](auto& c, bool on) { c.setBenchmarkLimitCuDNN(on ? 3 : 10); },
       false},
      {"cudnn_deterministic", [](auto& c, bool on) { c.setDeterministicCuDNN(on); }, false},
      {"mkldnn", [](auto& c, bool on) { c.setUserEnabledMkldnn(on); }, true},
      {"mkldnn_deterministic", [](auto& c, bool on) { c.setDeterministicMkldnn(on); }, false},
      {"nnpack", [](auto& c, bool on) { c.setUserEnabledNNPACK(on); }, true},
      {"flash", [](auto& c, bool on) { c.setSDPUseFlash(on); }, true},
      {"efficient", [](auto& c, bool on) { c.setSDPUseMemEfficient(on); }, true},
      {"math", [](auto& c, bool on) { c.setSDPUseMath(on); }, true},
      {"cudnn_sdp", [](auto& c, bool on) { c.setSDPUseCuDNN(on); }, true},
      {"overrideable", [](auto& c, bool on) { c.setSDPUseOverrideable(on); }, true},
      {"math_reduced", [](auto& c, bool on) { c.setAllowFP16BF16ReductionMathSDP(on); }, false},
      {"fp16_accumulation", [](auto& c, bool on) { c.setAllowFP16AccumulationCuBLAS(on); }, false},
      {"fp16_cublas", [](auto& c, bool on) { c.setAllowFP16ReductionCuBLAS(on); }, true},
      {"bf16_cublas", [](auto& c, bool on) { c.setAllowBF16ReductionCuBLAS(on); }, true},
      {"matmul_precision",
       [](auto& c, bool on) { c.setFloat32MatmulPrecision(on ? "medium" : "highest"); }, false},
      {"fp32_mkldnn_matmul",
       [](auto& c, bool on) {
         c.setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL,
                               on ? at::Float32Precision::BF16 : at::Float32Precision::IEEE);
       },
       false},
      {"fp32_generic",
       [](auto& c, bool on) {
         c.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL,
                               on ? at::Float32Precision::TF32 : at::Float32Precision::NONE);
       },
       false},
      {"sdp_priority",
       [](auto& c, bool on) {
         c.setSDPPriorityOrder(on ? std::vector<int64_t>{0, 1, 2, 3, 4}
                                  : std::vector<int64_t>{1, 2, 0, 3, 4});
       },
       false},
      {"default_dtype",
       [](auto&, bool on) {
         c10::set_default_dtype(caffe2::TypeMeta::fromScalarType(on ? at::kDouble : at::kFloat));
       },
       false},
      {"threads", [](auto&, bool on) { at::set_num_threads(on ? 1 : 2); }, false},
      {"flush_denormal", [](auto&, bool on) { at::Context::setFlushDenormal(on); }, false},
  };
  return all;
}

class GlobalStateTest : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { reset(); }
  static void reset() {
    // matmul_precision writes fp32_mkldnn_matmul too, hence in this order.
    for (const GlobalSetting& setting : all_global_settings())
      setting.set(at::globalContext(), setting.usual);
  }
};

TEST_F(GlobalStateTest, NoticesEverySetting) {
  for (const GlobalSetting& setting : all_global_settings()) {
    const GlobalState before = GlobalState::current().state;
    const uint32_t version = GlobalState::current().version;

    setting.set(at::globalContext(), !setting.usual);

    EXPECT_FALSE(before.unchanged()) << setting.name;
    EXPECT_NE(GlobalState::current().version, version) << setting.name;
    setting.set(at::globalContext(), setting.usual);
    EXPECT_TRUE(before.unchanged()) << setting.name;
  }
}

TEST_F(GlobalStateTest, StaysTheSameWhileNothingChanges) {
  const GlobalState before = GlobalState::current().state;
  const uint32_t version = GlobalState::current().version;

  (void)at::ones({4}).add(1);  // operators themselves must not disturb it

  EXPECT_TRUE(before.unchanged());
  EXPECT_EQ(GlobalState::current().version, version);
}

TEST_F(GlobalStateTest, ReadsAMixOfOldAndNewPrecisionSettingsWithoutThrowing) {
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision("highest");
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL,
                              at::Float32Precision::TF32);
  ASSERT_ANY_THROW(context.float32MatmulPrecision());  // what a plain getter would do

  EXPECT_NO_THROW(GlobalState::current());

  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL,
                              at::Float32Precision::NONE);
}

TEST_F(GlobalStateTest, NoticesInferenceMode) {
  const GlobalState before = GlobalState::current().state;

  c10::InferenceMode guard;

  EXPECT_FALSE(before.unchanged());
  EXPECT_TRUE(GlobalState::current().state.get("inference_mode"));
}

TEST_F(GlobalStateTest, FlushDenormalBelongsToTheThread) {
  ASSERT_TRUE(at::Context::setFlushDenormal(true));
  bool elsewhere = true;
  // A thread inherits the mode of its maker, so it clears its own.
  std::thread([&] {
    at::Context::setFlushDenormal(false);
    elsewhere = GlobalState::current().state.get("flush_denormal");
  }).join();

  EXPECT_FALSE(elsewhere);
  EXPECT_TRUE(GlobalState::current().state.get("flush_denormal"));
}

TEST_F(GlobalStateTest, ScopedStateAppliesEverySettingAndPutsItBack) {
  const GlobalState usual = GlobalState::current().state;
  for (const GlobalSetting& setting : all_global_settings()) {
    setting.set(at::globalContext(), !setting.usual);
    const GlobalState wanted = GlobalState::current().state;
    setting.set(at::globalContext(), setting.usual);
    {
      ScopedGlobalState scope(wanted);
      EXPECT_TRUE(wanted.unchanged()) << setting.name;
    }
    EXPECT_TRUE(usual.unchanged()) << setting.name;
  }
}

TEST_F(GlobalStateTest, ScopedStateUndoesWhatHappenedInside) {
  const GlobalState usual = GlobalState::current().state;
  GlobalState wanted = usual;
  wanted.set("deterministic_algorithms", 1);
  {
    ScopedGlobalState scope(wanted);
    at::globalContext().setBenchmarkCuDNN(true);
  }
  EXPECT_TRUE(usual.unchanged());
}

TEST_F(GlobalStateTest, ScopedStateThatIsInForceAlreadyLeavesWhatHappensInside) {
  const GlobalState usual = GlobalState::current().state;
  {
    ScopedGlobalState scope(usual);
    at::globalContext().setBenchmarkCuDNN(true);
  }
  EXPECT_FALSE(usual.unchanged());
  at::globalContext().setBenchmarkCuDNN(false);
}

TEST_F(GlobalStateTest, ScopedFlushDenormalChangesArithmetic) {
  GlobalState wanted = GlobalState::current().state;
  wanted.set("flush_denormal", 1);
  volatile float tiny = std::numeric_limits<float>::denorm_min() * 4;
  volatile float one = 1;  // or the compiler drops the multiplication
  const float kept = tiny * one;
  float flushed = 1;
  {
    ScopedGlobalState scope(wanted);
    flushed = tiny * one;
  }
  EXPECT_GT(kept, 0.0f);
  EXPECT_EQ(flushed, 0.0f);
}

TEST_F(GlobalStateTest, ScopedStateLeavesInferenceModeAlone) {
  GlobalState wanted = GlobalState::current().state;
  wanted.set("inference_mode", 1);

  ScopedGlobalState scope(wanted);

  EXPECT_FALSE(c10::InferenceMode::is_enabled());
}

}  // namespace
}  // namespace torch_lazy
