#include "trace/bypass.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

nanoseconds time_now{0};

// A loop that computes something of `operations` operators and elements and reads it, as a recorder
// with a hot window does it, until the bypass is told otherwise.
class Loop {
 public:
  Loop(nanoseconds recorded, nanoseconds bypassed) : recorded_(recorded), bypassed_(bypassed) {}

  void run(Bypass& bypass, size_t times, size_t operations = 2, size_t elements = 16,
           WindowState state = WindowState::kHot) {
    for (size_t i = 0; i < times; ++i) {
      size_t left = operations;
      while (left > 0 && bypass.is_on() && bypass.add(7, elements)) --left;
      time_now += left > 0 ? recorded_ : bypassed_;
      if (left > 0) {
        recorded += left;
        bypass.note_window(state, left);
      }
      bypass.note_sync();
    }
  }

  size_t recorded = 0;  // operations

 private:
  nanoseconds recorded_, bypassed_;
};

Bypass watching() {
  return Bypass([] { return time_now; });
}

TEST(Bypass, SmallWindowsThatItIsFasterThanAreNotRecorded) {
  Bypass bypass = watching();
  Loop loop(microseconds(3), microseconds(2));

  loop.run(bypass, 1000);

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, SmallWindowsThatAreFasterAreRecorded) {
  Bypass bypass = watching();
  Loop loop(microseconds(2), microseconds(3));

  loop.run(bypass, 1000);

  EXPECT_FALSE(bypass.is_on());
  EXPECT_GT(loop.recorded, 1800u);
}

TEST(Bypass, ThatIsFarSlowerIsTriedForFewSyncPoints) {
  Bypass bypass = watching();
  Loop loop(microseconds(20), microseconds(60));

  loop.run(bypass, 1000);

  EXPECT_GT(loop.recorded, 2 * (1000 - 2 * Bypass::kLeastSyncs) - 1);
}

TEST(Bypass, IsNotTriedWhereSyncPointsAreFarFromEachOther) {
  Bypass bypass = watching();
  Loop loop(2 * Bypass::kMostBetween, Bypass::kMostBetween);

  loop.run(bypass, 1000);

  EXPECT_EQ(loop.recorded, 2000u);
}

TEST(Bypass, IsNotTriedWhileWindowsAreLearnt) {
  Bypass bypass = watching();
  Loop loop(microseconds(3), microseconds(2));

  loop.run(bypass, 1000, 2, 16, WindowState::kWarm);

  EXPECT_EQ(loop.recorded, 2000u);
}

TEST(Bypass, IsTriedAgainAfterAWhile) {
  Bypass bypass = watching();
  Loop(microseconds(3), microseconds(2)).run(bypass, 1000);
  Loop now(microseconds(2), microseconds(3));

  now.run(bypass, 2 * Bypass::kStays);

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, EndsWhereMoreElementsCome) {
  Bypass bypass = watching();
  Loop loop(microseconds(3), microseconds(2));
  loop.run(bypass, 1000);

  loop.run(bypass, 1, 2, 1000);

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, EndsWhereMoreOperationsCome) {
  Bypass bypass = watching();
  Loop loop(microseconds(3), microseconds(2));
  loop.run(bypass, 1000);

  loop.run(bypass, 1, 20);

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, EndsWhereAnotherOperatorComes) {
  Bypass bypass = watching();
  Loop(microseconds(3), microseconds(2)).run(bypass, 1000);

  const bool bypasses = bypass.add(8, 16);

  EXPECT_FALSE(bypasses);
  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, LeavesOutWindowsOfAProgramThatNeverRepeats) {
  Bypass bypass = watching();
  Loop loop(2 * Bypass::kMostBetween, Bypass::kMostBetween);
  loop.run(bypass, Bypass::kPatience / 10, 10, 16, WindowState::kCold);
  loop.recorded = 0;

  loop.run(bypass, 10'000, 10, 16, WindowState::kCold);

  EXPECT_NEAR(double(loop.recorded), 10 * 10'000 / (Bypass::kLeftOut + 1), 100);
}

TEST(Bypass, RecordsAllOnceALargeWindowRepeats) {
  Bypass bypass = watching();
  Loop loop(2 * Bypass::kMostBetween, Bypass::kMostBetween);
  loop.run(bypass, Bypass::kPatience / 10 + 1, 10, 16, WindowState::kCold);

  loop.run(bypass, Bypass::kLeftOut + 1, 100, 16, WindowState::kWarm);

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, RecordsNowAndThenWhereAProgramComesToNoSyncPoint) {
  Bypass bypass = watching();
  bypass.note_window(WindowState::kCold, Bypass::kPatience);

  size_t left_out = 0;
  while (bypass.add(7, 16)) ++left_out;

  EXPECT_EQ(left_out, 2 * Bypass::kLeftOut * Bypass::kPatience);
  EXPECT_FALSE(bypass.is_on());
}

}  // namespace
}  // namespace torch_lazy
