// Events of a profile: what is logged, and what a run shows of its steps.

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ops/operator_info.h"
#include "profile/range.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

// Locations without a code object are numbers as good as any here.
constexpr LocationId kFirstLine = 11, kSecondLine = 22;

// A recording of operations from these lines.
Tape tape_of(const std::vector<LocationId>& lines) {
  const OperatorInfo& neg = operator_info("aten::neg", "");
  Tape tape;
  for (const LocationId line : lines) {
    tape.begin(&neg, line);
    tape.end();
  }
  return tape;
}

TEST(Profile, NothingIsLoggedWhileNoLogIsKept) {
  mark({EventKind::kFlush, "before"});
  ASSERT_TRUE(start_event_log());
  mark({EventKind::kFlush, "meanwhile"});
  const EventLog log = stop_event_log();
  mark({EventKind::kFlush, "after"});

  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].name, "meanwhile");
  EXPECT_TRUE(stop_event_log().events.empty());
}

TEST(Profile, ThereIsOneLogAtATime) {
  ASSERT_TRUE(start_event_log());
  EXPECT_FALSE(start_event_log());
  stop_event_log();
}

TEST(Profile, AnExceptionEndsARange) {
  ASSERT_TRUE(start_event_log());
  try {
    const Range outer({EventKind::kRun, "outer"});
    const Range inner({EventKind::kKernel, "inner"});
    throw std::runtime_error("from within");
  } catch (const std::runtime_error&) {
  }
  const EventLog log = stop_event_log();

  ASSERT_EQ(log.events.size(), 2u);
  const ProfileEvent &inner = log.events[0], &outer = log.events[1];
  EXPECT_EQ(inner.name, "inner");
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_LE(inner.end, outer.end);
  EXPECT_EQ(inner.thread, outer.thread);
}

TEST(RunningWindow, NodesAreLookedUpOnTheTapeOfTheRun) {
  const Tape tape = tape_of({kFirstLine, kFirstLine, kSecondLine});
  const std::vector<uint32_t> operations{2, 0, 1};  // by node
  const RunningWindow run(tape.entries(), operations, true);

  EXPECT_EQ(lines_of_nodes({0}), std::vector<LocationId>{kSecondLine});
  EXPECT_EQ(lines_of_nodes({1, 2, 0}), (std::vector<LocationId>{kFirstLine, kSecondLine}));
  EXPECT_TRUE(lines_of_nodes({3}).empty()) << "a node that the graph does not have";
}

TEST(RunningWindow, StepsAreShownWithinItButWhereTheyAreCompared) {
  const Tape tape = tape_of({kFirstLine});
  EXPECT_FALSE(shows_steps());
  {
    const RunningWindow run(tape.entries(), {}, true);
    EXPECT_TRUE(shows_steps());
    {
      const UnprofiledRun compared;
      EXPECT_FALSE(shows_steps());
      EXPECT_TRUE(lines_of_nodes({0}).empty());
    }
    EXPECT_TRUE(shows_steps());
  }
  EXPECT_FALSE(shows_steps());
}

}  // namespace
}  // namespace torch_lazy
