#include "trace/bypass.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

nanoseconds time_now{0};

// What is between two sync points.
struct Stretch {
  size_t operations = 2, elements = 16;
  size_t windows = 1;
  WindowState state = WindowState::kHot;
  uint64_t op = 7;
};

// A program, as a recorder runs it: what a stretch takes where it is recorded and where it bypasses
// the tape.
class Program {
 public:
  Program(nanoseconds recorded, nanoseconds bypassed) : recorded_(recorded), bypassed_(bypassed) {}

  void run(Bypass& bypass, size_t times, const Stretch& stretch = {}) {
    for (size_t i = 0; i < times; ++i) {
      size_t left = stretch.operations;
      while (left > 0 && bypass.is_on() && bypass.add(stretch.op, stretch.elements)) --left;
      time_now += left > 0 ? recorded_ : bypassed_;
      if (left > 0) {
        recorded += left;
        for (size_t k = 0; k < stretch.windows; ++k)
          bypass.note_window(stretch.state, left / stretch.windows);
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

// Of small windows, by what is faster. A run of a race is over behind kLeastSyncs of them.
Program losing() {
  return {microseconds(75), microseconds(50)};
}
Program winning() {
  return {microseconds(50), microseconds(75)};
}
// Whose sync points are too far from each other for a race.
Program slow() {
  return {2 * Bypass::kMostBetween, Bypass::kMostBetween};
}

constexpr size_t kRuns = 1000;  // more than a race takes

// ---------------------------------------------------------------- small windows

TEST(Bypass, SmallWindowsThatItIsFasterThanAreNotRecorded) {
  Bypass bypass = watching();
  Program program = losing();

  program.run(bypass, kRuns);

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, SmallWindowsThatAreFasterAreRecorded) {
  Bypass bypass = watching();
  Program program = winning();

  program.run(bypass, kRuns);

  EXPECT_FALSE(bypass.is_on());
  EXPECT_GT(program.recorded, 1600u);
}

TEST(Bypass, ThatIsFarSlowerIsTriedForFewSyncPoints) {
  Bypass bypass = watching();
  Program program(microseconds(50), microseconds(150));

  program.run(bypass, kRuns);

  EXPECT_GE(program.recorded, 2 * (kRuns - 2 * Bypass::kLeastSyncs));
}

TEST(Bypass, IsNotTriedWhereSyncPointsAreFarFromEachOther) {
  Bypass bypass = watching();
  Program program = slow();

  program.run(bypass, kRuns);

  EXPECT_EQ(program.recorded, 2 * kRuns);
}

TEST(Bypass, SmallWindowsWithoutASyncPointForLongAreRacedToo) {
  Bypass bypass = watching();
  Program program = slow();

  program.run(bypass, kRuns, {.operations = 1000, .windows = 100});

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, IsNotTriedOnLargeWindowsWithoutASyncPointForLong) {
  Bypass bypass = watching();
  Program program = slow();

  program.run(bypass, kRuns, {.operations = 1000, .windows = 10});

  EXPECT_EQ(program.recorded, 1000 * kRuns);
}

TEST(Bypass, IsNotTriedWhileWindowsAreLearnt) {
  Bypass bypass = watching();
  Program program = losing();

  program.run(bypass, kRuns, {.state = WindowState::kWarm});

  EXPECT_EQ(program.recorded, 2 * kRuns);
}

TEST(Bypass, IsNotTriedOnWindowsThatAreNew) {
  Bypass bypass = watching();
  Program program = losing();

  program.run(bypass, kRuns, {.operations = 4, .state = WindowState::kCold});

  EXPECT_EQ(program.recorded, 4 * kRuns);
}

TEST(Bypass, IsTriedWhereAWindowIsNewNowAndThen) {
  Bypass bypass = watching();
  Program program = losing();

  for (size_t i = 0; i < kRuns / 3; ++i) {  // a third divides kBeforeRace + 1
    program.run(bypass, 2);
    program.run(bypass, 1, {.state = WindowState::kCold});
  }

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, IsTriedWhereLearningGoesOnForLong) {
  Bypass bypass = watching();
  Program program = losing();

  program.run(bypass, Bypass::kMostLearnt + kRuns, {.state = WindowState::kWarm});

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, IsTriedAgainAfterAWhile) {
  Bypass bypass = watching();
  losing().run(bypass, kRuns);

  winning().run(bypass, 2 * Bypass::kStays);

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, EndsBehindAStretchOfMoreElements) {
  Bypass bypass = watching();
  Program program = losing();
  program.run(bypass, kRuns);

  program.run(bypass, 1, {.elements = 2 * Bypass::kFewElements});

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, EndsBehindAStretchOfMoreOperations) {
  Bypass bypass = watching();
  Program program = losing();
  program.run(bypass, kRuns);

  program.run(bypass, 1, {.operations = 2 * Bypass::kFewOperations + 1});

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, GoesOnWhereStretchesVaryThatAreSmallAllTheSame) {
  Bypass bypass = watching();
  Program program = losing();
  program.run(bypass, kRuns, {.operations = 1, .elements = 1});

  program.run(bypass, 100, {.operations = 10, .elements = 100});

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, EndsWhereOtherOperatorsComeEachTime) {
  Bypass bypass = watching();
  Program program = losing();
  program.run(bypass, kRuns);

  program.run(bypass, Bypass::kNewInARow, {.op = 8});

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, GoesOnWhereAnotherOperatorComesNowAndThen) {
  Bypass bypass = watching();
  Program program = losing();
  program.run(bypass, kRuns);

  for (int i = 0; i < 100; ++i) {
    program.run(bypass, 1, {.op = 8});
    program.run(bypass, 10);
  }

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, LeavesLargeStretchesAmongSmallOnesRecorded) {
  Bypass bypass = watching();
  Program small = losing();
  Program large(microseconds(500), microseconds(1500));

  for (size_t i = 0; i < 1000; ++i) {
    small.run(bypass, 100);
    large.run(bypass, 1, {.operations = 80, .elements = 65536});
  }

  EXPECT_GT(large.recorded, size_t{80 * 980});
}

// One in which a large stretch stands behind twenty small ones, on which the bypass wins.
void run_mixed(Bypass& bypass, Program& large) {
  Program small = losing();
  for (size_t i = 0; i < 1000; ++i) {
    small.run(bypass, 20);
    large.run(bypass, 1, {.operations = 40});
  }
}

TEST(Bypass, IsNotForALoopWhoseLargeStretchesLoseMoreThanSmallOnesGain) {
  Bypass bypass = watching();
  Program large(microseconds(1000), microseconds(2000));

  run_mixed(bypass, large);

  EXPECT_FALSE(bypass.is_on());
  EXPECT_GT(large.recorded, size_t{40 * 900});
}

TEST(Bypass, IsForALoopWhoseStretchesGainTogether) {
  Bypass bypass = watching();
  Program large(microseconds(1000), microseconds(1200));

  run_mixed(bypass, large);

  EXPECT_TRUE(bypass.is_on());
}

TEST(Bypass, EndsInTheMiddleOfARaceWhereNoSyncPointComesAnyMore) {
  Bypass bypass = watching();
  Program program = losing();
  while (!bypass.is_on()) program.run(bypass, 1);

  program.run(bypass, 1, {.operations = 100'000});

  EXPECT_FALSE(bypass.is_on());
  EXPECT_GT(program.recorded, 90'000u);
}

// ---------------------------------------------------------------- what never repeats

constexpr Stretch kNew{.operations = 200, .state = WindowState::kCold};

// One that has shown that it never repeats.
Bypass leaving_out() {
  Bypass bypass = watching();
  slow().run(bypass, Bypass::kSyncsInVain, kNew);
  return bypass;
}

TEST(Bypass, LeavesOutMostOfAProgramThatNeverRepeats) {
  Bypass bypass = leaving_out();
  Program program = slow();

  program.run(bypass, 8000, kNew);

  EXPECT_NEAR(double(program.recorded), 200.0 * 8000 / Bypass::kOneIn, 200.0 * 150);
}

TEST(Bypass, LeavesOutNothingOfAFirstStepHoweverLongItIs) {
  Bypass bypass = watching();

  slow().run(bypass, 1, {.operations = 100'000, .state = WindowState::kCold});

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, RecordsAllOnceAWindowRepeats) {
  Bypass bypass = leaving_out();
  const Stretch repeating{.operations = 100, .state = WindowState::kWarm};
  while (bypass.is_on()) slow().run(bypass, 1, kNew);

  slow().run(bypass, 1, repeating);

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, SeesWhatRepeatsInTurnsWithWhatDoesNot) {
  Bypass bypass = leaving_out();
  Program repeating = slow();

  for (int i = 0; i < 100; ++i) {
    repeating.run(bypass, 1, {.operations = 400, .state = WindowState::kWarm});
    slow().run(bypass, 1, {.operations = 40, .state = WindowState::kCold});
  }

  EXPECT_GT(repeating.recorded, 400u * 80);
}

TEST(Bypass, RecordsAllOnceLargerStretchesCome) {
  Bypass bypass = leaving_out();

  slow().run(bypass, 1, {.operations = 1000, .state = WindowState::kCold});

  EXPECT_FALSE(bypass.is_on());
}

TEST(Bypass, RecordsAllWhereNoSyncPointComesAnyMore) {
  Bypass bypass = leaving_out();
  while (!bypass.is_on()) slow().run(bypass, 1, kNew);
  Program program = slow();

  program.run(bypass, 1, {.operations = 10'000, .state = WindowState::kCold});

  EXPECT_GT(program.recorded, 5'000u);
  EXPECT_FALSE(bypass.is_on());
}

}  // namespace
}  // namespace torch_lazy
