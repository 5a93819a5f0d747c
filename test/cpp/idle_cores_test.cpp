#include "runtime/idle_cores.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kBegin{100};
constexpr seconds kIdle{40};  // until then

TEST(IdleCores, AScriptOnOneOfTwoCoresLeavesOne) {
  IdleCores cores(kBegin, kIdle);

  cores.look(kBegin + milliseconds(200), kIdle + milliseconds(190));

  EXPECT_TRUE(cores.has_one());
}

TEST(IdleCores, ATeamOnAllCoresLeavesNoneThoughItWaitsALittle) {
  IdleCores cores(kBegin, kIdle);

  cores.look(kBegin + milliseconds(200), kIdle + milliseconds(30));

  EXPECT_FALSE(cores.has_one());
}

TEST(IdleCores, OnlyTheTimeSinceTheLastLookCounts) {
  IdleCores cores(kBegin, kIdle);
  cores.look(kBegin + seconds(10), kIdle);
  ASSERT_FALSE(cores.has_one());

  cores.look(kBegin + seconds(11), kIdle + seconds(1));

  EXPECT_TRUE(cores.has_one());
}

TEST(IdleCores, AMomentIsTooShortForALook) {
  const IdleCores cores(kBegin, kIdle);

  EXPECT_FALSE(cores.is_due(kBegin + milliseconds(1)));
  EXPECT_TRUE(cores.is_due(kBegin + milliseconds(200)));
}

constexpr const char* kProcStat =
    "cpu  66 33 97 60 5 0 3 2 0 0\n"
    "cpu0 31 17 47 20 1 0 4 1 0 0\n"
    "cpu1 35 16 50 30 2 0 1 1 0 0\n"
    "cpu10 35 16 50 10 2 0 1 1 0 0\n"
    "intr 29426048 0 0 0\n";

TEST(IdleTime, IsTheSumOfThoseOfTheGivenCoresAndIncludesWaitsForTheDisk) {
  EXPECT_EQ(idle_time(kProcStat, {0}), milliseconds(210));
  EXPECT_EQ(idle_time(kProcStat, {1, 10}), milliseconds(440));
}

TEST(IdleTime, IsNotKnownOfACoreThatIsNotListed) {
  EXPECT_EQ(idle_time(kProcStat, {0, 2}), std::nullopt);
}

TEST(IdleTime, IsNotKnownWhereNothingIsCounted) {
  EXPECT_EQ(idle_time("cpu  0 0 0 0 0\ncpu0 0 0 0 0 0\n", {0}), std::nullopt);
  EXPECT_EQ(idle_time("", {0}), std::nullopt);
}

}  // namespace
}  // namespace torch_lazy
