// A run that begins before its window is recorded, by an executable that notes what it is told.

#include "trace/early_run.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

struct Told {
  std::vector<size_t> nodes;
  std::vector<size_t> inputs;  // of them that were defined
  std::function<void()> meanwhile = [] {};
};

class NotingRun final : public StagedRun {
 public:
  explicit NotingRun(Told& told) : told_(told) {}
  bool advance(size_t nodes, c10::ArrayRef<at::Tensor> inputs) override {
    told_.nodes.push_back(nodes);
    size_t defined = 0;
    for (const at::Tensor& input : inputs) defined += input.defined();
    told_.inputs.push_back(defined);
    told_.meanwhile();
    return true;
  }
  RunResult finish(c10::ArrayRef<at::Tensor> inputs) override {
    return {{inputs.begin(), inputs.end()}};
  }

 private:
  Told& told_;
};

class NotingExecutable final : public Executable {
 public:
  explicit NotingExecutable(Told& told) : told_(told) {}
  RunResult run(c10::ArrayRef<at::Tensor>) override { return {}; }
  std::unique_ptr<StagedRun> begin_run() override { return std::make_unique<NotingRun>(told_); }
  bool is_concurrent() const override { return true; }

 private:
  Told& told_;
};

class EarlyRunTest : public ::testing::Test {
 protected:
  EarlyRunTest() {
    auto version = std::make_shared<CompiledTrace::Version>();
    version->executable = std::make_shared<NotingExecutable>(told);
    version->graph.operations = {0, 2, 3};  // operation 1 is no node
    version->graph.inputs.resize(2);
    run = EarlyRun::begin(version, *thread, GlobalState::current().state, std::nullopt);
  }
  ~EarlyRunTest() override { EXPECT_TRUE(run->cancel()); }

  void record(size_t operations) {
    const OperatorInfo& neg = operator_info("aten::neg", "");
    for (size_t i = 0; i < operations; ++i) {
      tape.begin(&neg, 1);
      tape.end();
    }
  }

  Told told;
  Tape tape;
  EarlyThread* const thread = new EarlyThread;  // never destroyed
  std::unique_ptr<EarlyRun> run;
};

TEST_F(EarlyRunTest, IsToldTheNodesAndInputsThatAreKnown) {
  const at::Tensor a = at::zeros({1}), b = at::zeros({1});
  record(2);
  run->tell(tape, {a});
  record(2);
  run->tell(tape, {a, b});

  EXPECT_TRUE(run->wait());
  EXPECT_EQ(told.nodes, (std::vector<size_t>{1, 3}));
  EXPECT_EQ(told.inputs, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(run->finish({a, b}).outputs.size(), 2);
}

TEST_F(EarlyRunTest, IsSpoiledByASettingThatTheProgramChangesMeanwhile) {
  at::Context& settings = at::globalContext();
  const bool before = settings.userEnabledMathSDP();
  told.meanwhile = [&] { settings.setSDPUseMath(!before); };
  record(1);
  run->tell(tape, {});

  EXPECT_FALSE(run->wait());
  EXPECT_TRUE(run->has_begun() && run->is_spoiled());
  run->tell(tape, {});
  EXPECT_FALSE(run->wait());
  EXPECT_EQ(told.nodes.size(), 1) << "it went on after that";
  settings.setSDPUseMath(before);
}

TEST_F(EarlyRunTest, BeginsNothingUnderOtherSettingsThanTheWindows) {
  at::Context& settings = at::globalContext();
  const bool before = settings.userEnabledMathSDP();
  settings.setSDPUseMath(!before);
  record(1);
  run->tell(tape, {});

  EXPECT_TRUE(run->wait());
  settings.setSDPUseMath(before);
  EXPECT_TRUE(told.nodes.empty());
  EXPECT_FALSE(run->has_begun() || run->is_spoiled());
}

TEST_F(EarlyRunTest, IsSpoiledByAnExecutableThatRaises) {
  told.meanwhile = [] { throw std::runtime_error("no such stage"); };
  record(1);
  run->tell(tape, {});

  EXPECT_FALSE(run->wait());
  EXPECT_TRUE(run->is_spoiled());
}

TEST_F(EarlyRunTest, WhatAnOperatorWarnsOfIsSaidByTheThreadThatFinishes) {
  std::vector<c10::Warning> said;
  told.meanwhile = [] { TORCH_WARN("mind the stage"); };
  record(1);
  run->tell(tape, {});
  ASSERT_TRUE(run->wait());
  EXPECT_TRUE(said.empty());
  {
    const CollectWarnings collect(said);
    run->finish({});
  }

  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].msg(), "mind the stage");
}

}  // namespace
}  // namespace torch_lazy
