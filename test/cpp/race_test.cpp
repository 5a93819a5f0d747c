#include "runtime/race.h"

#include <gtest/gtest.h>

#include <functional>

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;
using Times = std::function<int64_t(int run, Race::Way way)>;

// Runs until there is a winner; returns how many runs that took.
int run(Race& race, const Times& time) {
  int runs = 0;
  do race.add(nanoseconds(time(runs++, race.next())));
  while (!race.winner());
  return runs;
}

Times constant(int64_t first, int64_t rival) {
  return [=](int, Race::Way way) { return way == Race::kFirst ? first : rival; };
}

TEST(Race, ARivalThatIsFarSlowerRunsTwice) {
  Race race;

  EXPECT_EQ(run(race, constant(100, 200)), 4 + 2);
  EXPECT_EQ(race.winner(), Race::kFirst);
  EXPECT_EQ(race.least(Race::kRival), nanoseconds(200));
}

TEST(Race, AFirstThatIsFasterWinsAfterATurnOfEachOnceTheRivalIsWarm) {
  Race race;

  EXPECT_EQ(run(race,
                [](int at, Race::Way way) {
                  return way == Race::kFirst ? 100 : at == 5 ? 145 : 160;
                }),
            8);
  EXPECT_EQ(race.winner(), Race::kFirst);
}

TEST(Race, ARivalNeedsTwoRoundsHoweverFastItIs) {
  Race race;

  EXPECT_EQ(run(race, constant(1000, 10)), 16);
  EXPECT_EQ(race.winner(), Race::kRival);
}

TEST(Race, ARivalThatIsHardlyFasterLoses) {
  Race race;

  EXPECT_EQ(run(race, constant(102, 100)), 40);
  EXPECT_EQ(race.winner(), Race::kFirst);
}

TEST(Race, ARivalThatIsFivePercentFasterWinsAfterThreeRounds) {
  Race race;

  EXPECT_EQ(run(race, constant(105, 100)), 24);
  EXPECT_EQ(race.winner(), Race::kRival);
}

TEST(Race, RunsThatOtherLoadMakesLongerDecideNothing) {
  Race race;

  // Every other run of the first way is interrupted.
  run(race, [](int at, Race::Way way) {
    if (way == Race::kRival) return 100;
    return at % 2 == 0 ? 5000 : 90;
  });

  EXPECT_EQ(race.winner(), Race::kFirst);
}

TEST(Race, LoadThatMeetsTheSameRunsOfSomeRoundsDecidesNothing) {
  Race race;

  // The thread waits in the third run of each turn of the first way and has lost the caches in the
  // fourth, until the scheduler's time slices fall elsewhere.
  run(race, [](int at, Race::Way way) {
    if (way == Race::kRival) return 250;
    const bool waits = at < 24;
    return waits && at % 4 == 2 ? 9000 : waits && at % 4 == 3 ? 600 : 120;
  });

  EXPECT_EQ(race.winner(), Race::kFirst);
}

TEST(Race, ARivalThatIsFasterWinsOnABusyMachineInTheEnd) {
  Race race;

  EXPECT_EQ(
      run(race, [](int at, Race::Way way) { return (way == Race::kRival ? 100 : 300) + at * 10; }),
      40);

  EXPECT_EQ(race.winner(), Race::kRival);
}

TEST(Race, WarmUpsAndRunsThatAreTimedStepByStepDoNotCount) {
  Race race;

  run(race, [&](int, Race::Way way) {
    const bool counts = race.purpose() == Race::Run::kCounted;
    return way == Race::kFirst && counts ? 10 : 1000;
  });

  EXPECT_EQ(race.winner(), Race::kFirst);
  EXPECT_EQ(race.least(Race::kFirst), nanoseconds(10));
}

TEST(Race, GoesOnAfterARoundWhoseWinnerIsNotTaken) {
  Race race;
  run(race, constant(100, 200));

  run(race, constant(100, 10));

  EXPECT_EQ(race.rounds(), 2U);
  EXPECT_EQ(race.winner(), Race::kRival);
}

}  // namespace
}  // namespace torch_lazy
