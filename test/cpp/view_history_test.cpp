#include "trace/view_history.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

constexpr uint64_t part(uint64_t number) {
  return number << 48;
}

TEST(ViewHistory, APartThatIsTheSameInEachWindowDoesNotMove) {
  ViewHistory views;

  EXPECT_FALSE(views.moves(1, part(3)));
  EXPECT_FALSE(views.moves(2, part(3)));
  EXPECT_FALSE(views.moves(3, part(3)));
}

TEST(ViewHistory, APartThatIsAnotherOneInTheNextWindowMovesFromThenOn) {
  ViewHistory views;

  EXPECT_FALSE(views.moves(1, part(3)));
  EXPECT_TRUE(views.moves(2, part(4)));
  EXPECT_TRUE(views.moves(3, part(4)));
}

TEST(ViewHistory, ViewsAreToldApartByTheirOrderInTheWindow) {
  ViewHistory views;
  views.moves(1, part(3));
  views.moves(1, part(7));
  views.moves(1, part(9));

  EXPECT_TRUE(views.moves(2, part(4)));
  EXPECT_FALSE(views.moves(2, part(7)));
  EXPECT_FALSE(views.moves(2, part(9)));
}

TEST(ViewHistory, WhatComesAfterManyViewsOfAWindowDoesNotMove) {
  ViewHistory views;
  bool moved = false;
  for (uint64_t i = 0; i < 1000; ++i) views.moves(1, part(i));
  for (uint64_t i = 0; i < 256; ++i) views.moves(2, part(i));
  for (uint64_t i = 256; i < 1000; ++i) moved |= views.moves(2, part(i + 1));

  EXPECT_FALSE(moved);
}

}  // namespace
}  // namespace torch_lazy
