// Which traces a full cache keeps.

#include "runtime/trace_cache.h"

#include <gtest/gtest.h>

#include "base/config.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::TapeBuilder;

// A cache of its own for each test, with room for four windows.
class TraceCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { config().trace_operations = 4; }
  void TearDown() override {
    drop_traces(this);
    config().trace_operations = 0;
  }

  // Records a window of one operation, another one for each number of elements.
  std::shared_ptr<CompiledTrace> record(int64_t elements) {
    TapeBuilder window;
    const Handle x = window.input(at::ones({elements}));
    const Handle y = window.call("aten::exp", "", {x})[0];
    return compiled_trace(
        this, {.tape = window.tape, .structure = window.tape.hash(), .live = window.live({y})}, {});
  }

  void record_often(std::vector<int64_t> elements) {
    for (int i = 0; i < 100; ++i)
      for (const int64_t number : elements) record(number);
  }
};

TEST_F(TraceCacheTest, ATraceIsTurnedAwayWhereAllAreInUse) {
  for (int64_t elements = 1; elements <= 4; ++elements) record(elements);

  EXPECT_EQ(record(5), nullptr);
  for (int64_t elements = 1; elements <= 4; ++elements) EXPECT_NE(record(elements), nullptr);
}

TEST_F(TraceCacheTest, TracesThatAreNotUsedAnyMoreMakeRoom) {
  std::vector<std::shared_ptr<CompiledTrace>> traces;
  for (int64_t elements = 1; elements <= 4; ++elements) traces.push_back(record(elements));
  const TraceGeneration before = trace_generation(this);

  record_often({1, 2, 5});

  EXPECT_NE(record(5), nullptr);
  EXPECT_EQ(trace_generation(this), (TraceGeneration{before.emptied, before.dropped + 1}));
  EXPECT_FALSE(traces[0]->is_dropped());
  EXPECT_FALSE(traces[1]->is_dropped());
  EXPECT_TRUE(traces[2]->is_dropped());
  EXPECT_TRUE(traces[3]->is_dropped());
  EXPECT_EQ(record(1), traces[0]);
}

TEST_F(TraceCacheTest, ARunIsAUse) {
  std::vector<std::shared_ptr<CompiledTrace>> traces;
  for (int64_t elements = 1; elements <= 4; ++elements) traces.push_back(record(elements));

  for (int i = 0; i < 100; ++i) {
    traces[3]->note_run();
    record(5);
  }

  EXPECT_TRUE(traces[0]->is_dropped());
  EXPECT_FALSE(traces[3]->is_dropped());
}

TEST_F(TraceCacheTest, WhatIsKeptStaysHoweverManyAreTurnedAway) {
  std::vector<int64_t> all;
  for (int64_t elements = 1; elements <= 100; ++elements) all.push_back(elements);
  const TraceGeneration before = trace_generation(this);

  record_often(all);

  EXPECT_EQ(trace_generation(this), before);
  EXPECT_NE(record(1), nullptr);
}

TEST_F(TraceCacheTest, ATraceThatWasDroppedIsMadeAnewWhenItComesBack) {
  const auto before = record(1);
  for (int64_t elements = 2; elements <= 4; ++elements) record(elements);
  record_often({2, 3, 5});

  record_often({2, 1});
  const auto again = record(1);

  EXPECT_TRUE(before->is_dropped());
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again, before);
  EXPECT_FALSE(again->is_dropped());
}

}  // namespace
}  // namespace torch_lazy
