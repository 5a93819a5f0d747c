// Who computes products of a shape, by times that are told.

#include "backend/cpu/product_choice.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace torch_lazy {
namespace {

constexpr int64_t kCode = ProductChoice::kNanosecondsOfCode;
constexpr int kTrial = 1 + 2 * ProductChoice::kTimedCalls;  // calls, that which makes code first

// Of equal sizes, up to the number of threads.
ProductShape shape(int threads) {
  return {1, 64, 64, 64, {false, false}, false, threads};
}

// One call, that takes so long. Whether it was oneDNN's.
bool call(ProductChoice& choice, const ProductShape& shape, int64_t of_aten, int64_t of_onednn) {
  const ProductChoice::Call call = choice.next(shape);
  if (call.timed_for) choice.took(call, call.onednn ? of_onednn : of_aten);
  return call.onednn;
}

// The number of the first call that is oneDNN's, from 0.
int first_of_onednn(ProductChoice& choice, const ProductShape& shape, int64_t of_aten) {
  for (int i = 0; i < 1000; ++i)
    if (call(choice, shape, of_aten, 0)) return i;
  return -1;
}

// Whether oneDNN does all later calls, or ATen.
bool chosen(ProductChoice& choice, const ProductShape& shape, int64_t of_aten, int64_t of_onednn) {
  first_of_onednn(choice, shape, of_aten);
  for (int i = 1; i < kTrial; ++i) call(choice, shape, of_aten, of_onednn);
  const bool onednn = call(choice, shape, of_aten, of_onednn);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(call(choice, shape, of_aten, of_onednn), onednn);
  return onednn;
}

TEST(ProductChoice, IsWhoeverTookLess) {
  ProductChoice choice;

  EXPECT_TRUE(chosen(choice, shape(1), 40'000, 30'000));
  EXPECT_FALSE(chosen(choice, shape(2), 30'000, 40'000));
}

TEST(ProductChoice, ACallThatWasInterruptedDoesNotDecide) {
  ProductChoice choice;
  first_of_onednn(choice, shape(1), 40'000);

  for (int i = 1; i < kTrial; ++i) call(choice, shape(1), 40'000, i < 4 ? 9'000'000 : 30'000);

  EXPECT_TRUE(call(choice, shape(1), 40'000, 30'000));
}

// Of a step that multiplies so often.
class ProductChoiceInSteps : public ::testing::TestWithParam<int> {};

TEST_P(ProductChoiceInSteps, EachPlaceOfTheStepSeesBoth) {
  const int places = GetParam();
  ProductChoice choice;
  first_of_onednn(choice, shape(1), 40'000);

  std::vector<std::set<bool>> seen(static_cast<size_t>(places));
  for (int i = 1; i < kTrial; ++i)
    seen[size_t(i % places)].insert(call(choice, shape(1), 40'000, 30'000));

  for (const std::set<bool>& of_place : seen) EXPECT_EQ(of_place.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Places, ProductChoiceInSteps, ::testing::Range(1, 7));

TEST(ProductChoice, IsSettledWhenTheTrialIsOver) {
  ProductChoice choice;

  int open = 0;
  while (open < 1000) {
    const ProductChoice::Call call = choice.next(shape(1));
    if (call.is_settled) break;
    ++open;
    if (call.timed_for) choice.took(call, kCode / 2);
  }

  EXPECT_EQ(open, 3 + kTrial);  // three calls take longer than the code
}

TEST(ProductChoice, AShapeWaitsForTheTimeOfItsCodeAndThatOfTheShapesBefore) {
  ProductChoice choice;

  EXPECT_EQ(first_of_onednn(choice, shape(1), kCode / 2), 3);
  EXPECT_EQ(first_of_onednn(choice, shape(2), kCode / 2), 5);
  EXPECT_EQ(first_of_onednn(choice, shape(3), kCode / 2), 7);
}

TEST(ProductChoice, IsAtensWhereOnednnHasNotBegunByThen) {
  ProductChoice choice;

  EXPECT_EQ(first_of_onednn(choice, shape(1), ProductChoice::kNanosecondsOfCall - 1), -1);
}

TEST(ProductChoice, AnotherLayoutABatchOrASumIsAnotherShape) {
  ProductChoice choice;
  chosen(choice, shape(1), 40'000, 30'000);
  ProductShape transposed = shape(1), batch = shape(1), sum = shape(1);
  transposed.transposed[1] = true;
  batch.batch = 2;
  sum.sum = true;

  for (const ProductShape& other : {transposed, batch, sum})
    EXPECT_FALSE(choice.next(other).onednn);
}

TEST(ProductChoice, OnednnIsTriedWithTheFirstShapesAlone) {
  ProductChoice choice;
  for (int threads = 0; threads < ProductChoice::kMostTried; ++threads)
    EXPECT_GE(first_of_onednn(choice, shape(threads), kCode), 0);

  EXPECT_EQ(first_of_onednn(choice, shape(ProductChoice::kMostTried), kCode), -1);
}

}  // namespace
}  // namespace torch_lazy
