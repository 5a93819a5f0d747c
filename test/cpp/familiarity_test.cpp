// Which windows are familiar by the code that began them.

#include "trace/familiarity.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

bool begins_familiar(Familiarity& familiarity, uint64_t path, bool backward = false) {
  familiarity.begin(path, backward);
  return familiarity.familiar();
}

TEST(RecentPaths, RemembersTheLatest) {
  RecentPaths paths;
  for (uint64_t path = 1; path <= 1000; ++path) EXPECT_TRUE(paths.insert(path)) << path;

  for (uint64_t path = 1; path <= 1000; ++path) EXPECT_FALSE(paths.insert(path)) << path;
}

TEST(RecentPaths, ForgetsWhatWasNotMetForLong) {
  RecentPaths paths;
  paths.insert(1);
  for (uint64_t path = 2; path <= 100000; ++path) {
    paths.insert(path);
    EXPECT_FALSE(paths.insert(2));
  }

  EXPECT_TRUE(paths.insert(1));
}

TEST(Familiarity, AWindowBegunByNewCodeIsUnfamiliar) {
  Familiarity familiarity;

  EXPECT_FALSE(begins_familiar(familiarity, 1));
  EXPECT_FALSE(begins_familiar(familiarity, 2));
}

TEST(Familiarity, AWindowBegunWhereOneWasBeforeIsFamiliar) {
  Familiarity familiarity;
  familiarity.begin(1, false);

  EXPECT_TRUE(begins_familiar(familiarity, 1));
}

TEST(Familiarity, BackwardIsUnfamiliarAfterAnUnfamiliarForward) {
  Familiarity familiarity;
  familiarity.begin(1, false);
  familiarity.begin(2, true);
  familiarity.begin(3, false);

  EXPECT_FALSE(begins_familiar(familiarity, 2, true));
}

TEST(Familiarity, NewCodeIsFamiliarOnceItsOperationsRepeat) {
  Familiarity familiarity;
  for (uint64_t path = 0; path < 4; ++path) {
    familiarity.begin(path, false);
    familiarity.learn(100, path > 0);
  }

  EXPECT_TRUE(begins_familiar(familiarity, 100));
}

TEST(Familiarity, NewCodeStaysUnfamiliarWhereFewOperationsRepeat) {
  Familiarity familiarity;
  for (uint64_t path = 0; path < 100; ++path) {
    familiarity.begin(path, false);
    familiarity.learn(100, path % 10 == 0);
  }

  EXPECT_FALSE(begins_familiar(familiarity, 100));
}

// How many of the windows begun by `windows` new paths are worth learning from.
int taught(Familiarity& familiarity, int windows, uint64_t first_path, bool repeated) {
  int taught = 0;
  for (int i = 0; i < windows; ++i) {
    familiarity.begin(first_path + i, false);
    if (!familiarity.teaches()) continue;
    familiarity.learn(10, repeated);
    ++taught;
  }
  return taught;
}

TEST(Familiarity, TheFirstWindowsOfNewCodeAreAllLearntFrom) {
  Familiarity familiarity;

  EXPECT_EQ(taught(familiarity, 256, 0, false), 256);
}

TEST(Familiarity, EndlessNewCodeIsSampled) {
  Familiarity familiarity;
  taught(familiarity, 256, 0, false);

  EXPECT_EQ(taught(familiarity, 1600, 256, false), 100);
}

TEST(Familiarity, AWindowOfKnownCodeIsAlwaysLearntFrom) {
  Familiarity familiarity;
  taught(familiarity, 1000, 0, false);

  for (int i = 0; i < 10; ++i) {
    familiarity.begin(0, false);
    EXPECT_TRUE(familiarity.teaches());
  }
}

TEST(Familiarity, KnownCodeEarnsThatNewCodeIsLearntFrom) {
  Familiarity familiarity;
  taught(familiarity, 256, 0, false);
  for (int i = 0; i < 10; ++i) familiarity.begin(0, false);

  EXPECT_EQ(taught(familiarity, 10, 1000, false), 10);
}

TEST(Familiarity, NewCodeWhoseSampledOperationsRepeatIsLearntFromAgain) {
  Familiarity familiarity;
  taught(familiarity, 1000, 0, false);
  taught(familiarity, 1000, 1000, true);

  EXPECT_EQ(taught(familiarity, 100, 2000, true), 100);
}

}  // namespace
}  // namespace torch_lazy
