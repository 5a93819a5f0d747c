// Where windows that never repeat are flushed, because what follows is always the same.

#include "trace/seams.h"

#include <gtest/gtest.h>

#include "tape/signature.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using testing::TapeBuilder;

// The sum of labels, a product with it, and `common` operations on that.
Tape window(int64_t labels, size_t common = 40, int64_t width = 3) {
  TapeBuilder builder;
  const auto label = builder.input(at::ones({labels})), x = builder.input(at::ones({2, width}));
  const auto total = builder.call("aten::sum", "", {label, c10::IValue()})[0];
  auto y = builder.call("aten::mul", "Tensor", {x, total})[0];
  for (size_t i = 0; i < common; ++i)
    y = builder.call(i % 2 == 0 ? "aten::neg" : "aten::abs", "", {y})[0];
  return builder.tape.prefix(builder.tape.size());
}

void note_new_windows(Seams& seams) {
  for (const int64_t labels : {3, 4, 5, 6}) seams.note_new(window(labels));
}

// After how many operations it is flushed; 0 where it is not.
size_t flushed_after(Seams& seams, const Tape& tape) {
  for (size_t operations = 1; operations <= tape.size(); ++operations)
    if (seams.at_seam(tape.prefix(operations))) return operations;
  return 0;
}

TEST(Signature, IsTheOperationWhereverItStands) {
  const Tape a = window(3), b = window(4);

  EXPECT_NE(signature(a, 0), signature(b, 0));  // of labels of another size
  for (size_t i = 1; i < a.size(); ++i) EXPECT_EQ(signature(a, i), signature(b, i));
  EXPECT_NE(signature(a, 2), signature(a, 3));                 // another operator
  EXPECT_NE(signature(a, 1), signature(window(3, 40, 5), 1));  // another size
  EXPECT_EQ(signature(a, 2), signature(a, 4));
}

TEST(Signature, LeavesOutWhatMayBeADynamicScalar) {
  const auto product = [](const at::Tensor& x, const at::Scalar& number) {
    TapeBuilder builder;
    builder.call("aten::mul", "Tensor", {builder.input(x), testing::number(number)});
    return signature(builder.tape, 0);
  };
  const at::Tensor x = at::ones({2});

  EXPECT_EQ(product(x, 0.5), product(x, 0.25));
  EXPECT_NE(product(x, int64_t(2)), product(x, int64_t(3)));
  EXPECT_NE(product(x.to(at::kBFloat16), 0.5), product(x.to(at::kBFloat16), 0.25));
}

TEST(Seams, AreBehindTheFirstOperationsThatNewWindowsHaveInCommon) {
  Seams seams;
  note_new_windows(seams);

  EXPECT_EQ(flushed_after(seams, window(7)), 5u);  // the sum, and four that are always the same
}

TEST(Seams, AreNoneWhereWindowsWereSeenTooSeldom) {
  Seams seams;
  seams.note_new(window(3));
  seams.note_new(window(4));

  EXPECT_EQ(flushed_after(seams, window(7)), 0u);
}

TEST(Seams, AreNoneWhereLittleIsInCommon) {
  Seams seams;
  for (const int64_t labels : {3, 4, 5, 6}) seams.note_new(window(labels, Seams::kLeast - 2));

  EXPECT_EQ(flushed_after(seams, window(7, Seams::kLeast - 2)), 0u);
}

TEST(Seams, AreNoneWhereAllSizesDiffer) {
  Seams seams;
  for (const int64_t width : {3, 4, 5, 6, 7, 8, 9}) seams.note_new(window(3, 40, width));

  EXPECT_EQ(flushed_after(seams, window(3, 40, 10)), 0u);
}

TEST(Seams, AreOneOnceUntilAWindowEndsOtherwise) {
  Seams seams;
  note_new_windows(seams);
  ASSERT_GT(flushed_after(seams, window(7)), 0u);

  EXPECT_EQ(flushed_after(seams, window(8)), 0u);
  seams.rearm();
  EXPECT_GT(flushed_after(seams, window(8)), 0u);
}

TEST(Seams, AreNoneAtTheBeginOfAWindow) {
  const auto window = [](bool with_sum) {
    TapeBuilder builder;
    if (with_sum) builder.call("aten::sum", "", {builder.input(at::ones({3})), c10::IValue()});
    auto y = builder.input(at::ones({2, 3}));
    for (int i = 0; i < 40; ++i) y = builder.call("aten::neg", "", {y})[0];
    return builder.tape.prefix(builder.tape.size());
  };
  Seams seams;
  for (int i = 0; i < 3; ++i) seams.note_new(window(true));
  seams.note_new(window(false));

  EXPECT_EQ(flushed_after(seams, window(false)), 0u);
}

// Layers of the same operations, and what is done `times` behind the third.
Tape layers(size_t times) {
  TapeBuilder builder;
  auto y = builder.input(at::ones({2, 3}));
  for (int layer = 0; layer < 12; ++layer) {
    for (const char* name : {"aten::neg", "aten::abs", "aten::exp", "aten::tanh"})
      y = builder.call(name, "", {y})[0];
    for (size_t i = 0; layer == 2 && i < times; ++i) y = builder.call("aten::sin", "", {y})[0];
  }
  return builder.tape.prefix(builder.tape.size());
}

TEST(Seams, AreNotTakenForTheSameOperationsEarlier) {
  Seams seams;
  for (const size_t times : {1, 2, 3, 4, 5, 6}) seams.note_new(layers(times));

  EXPECT_EQ(flushed_after(seams, layers(7)), 20u);  // three layers, seven sines, and one more
}

// Flushes at the seam; what follows is new each time, or has been seen.
void flush(Seams& seams, bool repeated) {
  seams.rearm();
  const Tape tape = window(7);
  ASSERT_GT(flushed_after(seams, tape), 0u);
  seams.note_new(tape.prefix(5));
  if (repeated)
    seams.note_repeated();
  else
    seams.note_new(tape.prefix(5));
}

TEST(Seams, BehindWhichNothingRepeatsAreNone) {
  Seams seams;
  note_new_windows(seams);
  for (int i = 0; i < 8; ++i) flush(seams, /*repeated=*/false);

  seams.rearm();
  EXPECT_EQ(flushed_after(seams, window(7)), 0u);
}

TEST(Seams, BehindWhichWindowsRepeatStay) {
  Seams seams;
  note_new_windows(seams);
  for (int i = 0; i < 20; ++i) flush(seams, /*repeated=*/i % 4 == 0);

  seams.rearm();
  EXPECT_GT(flushed_after(seams, window(7)), 0u);
}

}  // namespace
}  // namespace torch_lazy
