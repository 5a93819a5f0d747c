// Which streams of operators have a period, and where the windows of a loop begin.

#include "trace/period.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace torch_lazy {
namespace {

using Stream = std::vector<uint64_t>;

Stream block(size_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  Stream out(length);
  for (uint64_t& hash : out) hash = random();
  return out;
}

void push_all(PeriodDetector& detector, const Stream& stream, size_t times = 1) {
  for (size_t i = 0; i < times; ++i) {
    for (uint64_t hash : stream) detector.push(hash);
  }
}

TEST(PeriodDetector, FindsThePeriodOfALongLoop) {
  PeriodDetector detector(512);
  push_all(detector, block(100, 1), 6);
  EXPECT_EQ(detector.period(), 100u);
}

TEST(PeriodDetector, SaysNothingWhileTheWindowIsShort) {
  PeriodDetector detector(512);
  push_all(detector, block(100, 1), 5);
  EXPECT_FALSE(detector.period());
}

TEST(PeriodDetector, WantsThreeBlocks) {
  PeriodDetector detector(512);
  const Stream body = block(1000, 1);
  push_all(detector, body, 2);
  EXPECT_FALSE(detector.period());
  push_all(detector, body);
  EXPECT_EQ(detector.period(), 1000u);
}

TEST(PeriodDetector, ReturnsAMultipleThatIsWorthAWindow) {
  PeriodDetector detector(512, 64);
  push_all(detector, block(10, 1), 60);
  EXPECT_EQ(detector.period(), 70u);
}

TEST(PeriodDetector, FindsAPeriodOfOneOperator) {
  PeriodDetector detector(512, 64);
  push_all(detector, {7}, 600);
  EXPECT_EQ(detector.period(), 64u);
}

TEST(PeriodDetector, FindsNoneInAStreamThatNeverRepeats) {
  PeriodDetector detector(512);
  push_all(detector, block(20000, 1));
  EXPECT_FALSE(detector.period());
}

TEST(PeriodDetector, TakesTheLoopAroundEqualLayersNotTheLayers) {
  Stream step = block(90, 1);
  for (int layer = 0; layer < 6; ++layer) {
    const Stream body = block(40, 2);
    step.insert(step.end(), body.begin(), body.end());
  }
  PeriodDetector detector(512);
  for (int i = 0; i < 5; ++i) {
    for (uint64_t hash : step) {
      detector.push(hash);
      EXPECT_TRUE(!detector.period() || *detector.period() == step.size());
    }
  }
  EXPECT_EQ(detector.period(), step.size());
}

TEST(PeriodDetector, ReducesACandidateThatWasAMultiple) {
  // The first blocks repeat only every 20; what follows repeats every 10 but also every 20.
  Stream tail = block(10, 2);
  Stream start = block(10, 1);
  start.insert(start.end(), tail.begin(), tail.end());
  PeriodDetector detector(256, 1);
  push_all(detector, start, 3);
  push_all(detector, tail, 60);
  EXPECT_EQ(detector.period(), 10u);
}

TEST(PeriodDetector, WithdrawsThePeriodWhenTheStreamLeavesIt) {
  PeriodDetector detector(512);
  push_all(detector, block(100, 1), 6);
  ASSERT_TRUE(detector.period());
  detector.push(12345);
  EXPECT_FALSE(detector.period());
}

TEST(PeriodDetector, FindsALoopThatFollowsOtherWork) {
  PeriodDetector detector(512);
  push_all(detector, block(3000, 1));
  push_all(detector, block(300, 2), 4);
  EXPECT_EQ(detector.period(), 300u);
}

TEST(PeriodDetector, ForgetsTheStreamAtAReset) {
  PeriodDetector detector(512);
  const Stream body = block(100, 1);
  push_all(detector, body, 6);
  detector.reset();
  EXPECT_FALSE(detector.period());
  push_all(detector, body, 5);
  EXPECT_FALSE(detector.period());
  push_all(detector, body, 1);
  EXPECT_EQ(detector.period(), 100u);
}

TEST(PeriodDetector, DoesNotJoinStreamsAcrossAReset) {
  // Grams of the old stream are still in the table, at distances that would look like periods.
  PeriodDetector detector(64, 1);
  const Stream body = block(50, 1);
  push_all(detector, body, 4);
  detector.reset();
  push_all(detector, body);
  push_all(detector, block(50, 3));
  EXPECT_FALSE(detector.period());
}

TEST(PeriodDetector, FlushesALoopInEqualWindows) {
  PeriodDetector detector(512);
  const Stream body = block(100, 1);
  std::vector<size_t> flushes;
  for (size_t i = 0; i < 3000; ++i) {
    detector.push(body[i % body.size()]);
    if (detector.at_boundary()) {
      flushes.push_back(i);
      detector.restart_window();
    }
  }
  ASSERT_GE(flushes.size(), 20u);
  for (size_t i = 1; i < flushes.size(); ++i) EXPECT_EQ(flushes[i] - flushes[i - 1], 100u);
}

TEST(PeriodDetector, GoesOnPastItsHistory) {
  PeriodDetector detector(512, 64, 3, 2048);
  const Stream body = block(600, 1);
  push_all(detector, body, 50);
  EXPECT_EQ(detector.period(), 600u);
}

TEST(PeriodDetector, SkipsPeriodsLongerThanItsHistoryCanProve) {
  PeriodDetector detector(512, 64, 3, 2048);
  push_all(detector, block(700, 1), 50);
  EXPECT_FALSE(detector.period());
}

}  // namespace
}  // namespace torch_lazy
