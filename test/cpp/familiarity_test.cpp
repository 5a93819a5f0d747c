// Which windows are familiar by the code that began them.

#include "trace/familiarity.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

bool begins_familiar(Familiarity& familiarity, uint64_t path, bool backward = false) {
  familiarity.begin(path, backward);
  return familiarity.familiar();
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

}  // namespace
}  // namespace torch_lazy
