// Where windows that never repeat are flushed, because what was before or what follows is always
// the same.

#include "trace/seams.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

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
    if (const auto seam = seams.find(tape.prefix(operations))) {
      seams.reach(*seam);
      return operations;
    }
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

TEST(Merges, AreBehindTheFirstOperationsThatNewWindowsHaveInCommon) {
  Seams seams;
  note_new_windows(seams);

  EXPECT_EQ(flushed_after(seams, window(7)), 5u);  // the sum, and four that are always the same
}

TEST(Merges, AreNoneWhereWindowsWereSeenTooSeldom) {
  Seams seams;
  seams.note_new(window(3));
  seams.note_new(window(4));

  EXPECT_EQ(flushed_after(seams, window(7)), 0u);
}

TEST(Merges, AreNoneWhereLittleIsInCommon) {
  Seams seams;
  for (const int64_t labels : {3, 4, 5, 6})
    seams.note_new(window(labels, Seams::kLeastAfterMerge - 2));

  EXPECT_EQ(flushed_after(seams, window(7, Seams::kLeastAfterMerge - 2)), 0u);
}

TEST(Merges, AreNoneWhereAllSizesDiffer) {
  Seams seams;
  for (const int64_t width : {3, 4, 5, 6, 7, 8, 9}) seams.note_new(window(3, 40, width));

  EXPECT_EQ(flushed_after(seams, window(3, 40, 10)), 0u);
}

TEST(Merges, AreOneOnceUntilAWindowEndsOtherwise) {
  Seams seams;
  note_new_windows(seams);
  ASSERT_GT(flushed_after(seams, window(7)), 0u);
  seams.note_flush(FlushReason::kMerge);

  EXPECT_EQ(flushed_after(seams, window(8)), 0u);
  seams.note_flush(FlushReason::kSynchronize);
  EXPECT_GT(flushed_after(seams, window(8)), 0u);
}

TEST(Merges, AreNoneAtTheBeginOfAWindow) {
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

// The sum of `times` numbers, layers of the same operations, and what is done `times` behind the
// third of them.
Tape layers(size_t times) {
  TapeBuilder builder;
  builder.call("aten::sum", "", {builder.input(at::ones({int64_t(times)})), c10::IValue()});
  auto y = builder.input(at::ones({2, 3}));
  for (int layer = 0; layer < 12; ++layer) {
    for (const char* name : {"aten::neg", "aten::abs", "aten::exp", "aten::tanh"})
      y = builder.call(name, "", {y})[0];
    for (size_t i = 0; layer == 2 && i < times; ++i) y = builder.call("aten::sin", "", {y})[0];
  }
  return builder.tape.prefix(builder.tape.size());
}

TEST(Merges, AreNotTakenForTheSameOperationsEarlier) {
  Seams seams;
  for (const size_t times : {1, 2, 3, 4, 5, 6}) seams.note_new(layers(times));

  EXPECT_EQ(flushed_after(seams, layers(7)), 21u);  // three layers, seven sines, and one more
}

// Flushes at the seam; what follows is new each time, or has been seen.
void flush(Seams& seams, bool repeated) {
  const Tape tape = window(7);
  ASSERT_GT(flushed_after(seams, tape), 0u);
  seams.note_new(tape.prefix(5));
  seams.note_flush(FlushReason::kMerge);
  if (repeated)
    seams.note_repeated();
  else
    seams.note_new(tape.prefix(5));
  seams.note_flush(FlushReason::kSynchronize);
}

TEST(Merges, BehindWhichNothingRepeatsAreNone) {
  Seams seams;
  note_new_windows(seams);
  for (int i = 0; i < 8; ++i) flush(seams, /*repeated=*/false);

  seams.note_flush(FlushReason::kSynchronize);
  EXPECT_EQ(flushed_after(seams, window(7)), 0u);
}

TEST(Merges, BehindWhichWindowsRepeatStay) {
  Seams seams;
  note_new_windows(seams);
  for (int i = 0; i < 20; ++i) flush(seams, /*repeated=*/i % 4 == 0);

  seams.note_flush(FlushReason::kSynchronize);
  EXPECT_GT(flushed_after(seams, window(7)), 0u);
}

// Twelve operations on lines from `first` on, the eleventh of which a coin chooses.
Tape with_branch(bool coin, LocationId first, int64_t size = 3) {
  TapeBuilder builder;
  auto y = builder.input(at::ones({size}));
  for (LocationId i = 0; i < 12; ++i)
    y = builder.call(i == 10 && coin ? "aten::abs" : "aten::neg", "", {y}, first + i)[0];
  return builder.tape.prefix(12);
}

struct Operation {
  const char* name;
  LocationId location;
  int64_t factor = 1;
};

// Rounds of a loop, at the end of each of which one of two things is done.
std::vector<Operation> loop(const std::vector<bool>& coins, size_t body = 10, int64_t factor = 1) {
  std::vector<Operation> operations;
  for (const bool coin : coins) {
    for (size_t i = 0; i < body; ++i) operations.push_back({"aten::add", 1 + i / 2});
    operations.back().factor = factor;
    operations.push_back({coin ? "aten::sub" : "aten::rsub", 100});
  }
  return operations;
}

// Operations of the windows in which a script runs that does these, and then waits. Windows that
// end at seams were seen before or they were not.
std::vector<size_t> windows_of(Seams& seams, const std::vector<Operation>& operations,
                               bool repeated = false) {
  std::vector<size_t> windows;
  auto builder = std::make_unique<TapeBuilder>();
  auto x = builder->input(at::ones({2, 3}));
  auto y = x;
  for (const auto& [name, location, factor] : operations) {
    y = builder->call(name, "Tensor", {y, x, c10::IValue(factor)}, location)[0];
    const auto seam = seams.find(builder->tape);
    if (!seam) continue;
    const FlushReason kind = seams.reach(*seam);
    if (repeated)
      seams.note_repeated();
    else
      seams.note_new(builder->tape);
    seams.note_flush(kind);
    windows.push_back(builder->tape.size());
    builder = std::make_unique<TapeBuilder>();
    x = builder->input(x.tensor);
    y = builder->input(y.tensor);
  }
  if (!builder->tape.empty()) {
    seams.note_new(builder->tape);
    windows.push_back(builder->tape.size());
  }
  seams.note_flush(FlushReason::kSynchronize);
  return windows;
}

void run_loops(Seams& seams, size_t body = 10) {
  windows_of(seams, loop({false, false, true}, body));
  windows_of(seams, loop({false, true, false}, body));
  windows_of(seams, loop({true, false, true}, body));
  windows_of(seams, loop({false, true, true}, body));
}

TEST(Branches, AreWhereNewWindowsBeginToDiffer) {
  Seams seams;
  run_loops(seams);

  EXPECT_EQ(windows_of(seams, loop({false})), (std::vector<size_t>{10, 1}));
}

TEST(Branches, OfALoopAreOneInEachRound) {
  Seams seams;
  run_loops(seams);
  for (const bool last : {false, true, false, true})
    windows_of(seams, loop({last, true, last, false}));

  EXPECT_EQ(windows_of(seams, loop({true, false, true})), (std::vector<size_t>{10, 11, 11, 1}));
}

TEST(Branches, AreKnownByTheirLines) {
  Seams seams;
  run_loops(seams);

  EXPECT_EQ(windows_of(seams, loop({false}, 10, /*factor=*/3)), (std::vector<size_t>{10, 1}));
}

TEST(Branches, AreNoneBehindFewOperations) {
  Seams seams;
  const size_t few = Seams::kLeastBeforeBranch - 1;
  for (int i = 0; i < 20; ++i) windows_of(seams, loop({i % 2 == 0, i % 3 == 0, i % 4 == 0}, few));

  EXPECT_NE(windows_of(seams, loop({false}, few)).front(), few);
}

TEST(Branches, AreFoundAmongWindowsThatBeginWithOtherSizes) {
  Seams seams;
  for (const bool coin : {false, false, true, false})
    for (int64_t size = 3; size < 9; ++size) seams.note_new(with_branch(coin, 1, size));

  EXPECT_EQ(flushed_after(seams, with_branch(true, 1, 3)), 10u);
}

TEST(Branches, AreNoneWhereOneWindowIsTheBeginningOfTheOther) {
  Seams seams;
  for (const size_t rounds : {2, 3, 4, 5}) windows_of(seams, loop(std::vector<bool>(rounds, true)));

  EXPECT_EQ(windows_of(seams, loop(std::vector<bool>(6, true))), (std::vector<size_t>{66}));
}

TEST(Branches, WithoutWindowsThatRepeatAreNone) {
  Seams seams;
  run_loops(seams);
  for (int i = 0; i < 100; ++i) windows_of(seams, loop({false}));

  EXPECT_EQ(windows_of(seams, loop({false})), (std::vector<size_t>{11}));
}

TEST(Branches, BeforeWhichWindowsRepeatStay) {
  Seams seams;
  run_loops(seams);
  for (int i = 0; i < 200; ++i) windows_of(seams, loop({false}), /*repeated=*/i % 50 == 0);

  EXPECT_EQ(windows_of(seams, loop({false})), (std::vector<size_t>{10, 1}));
}

TEST(Seams, ThatWereNotReachedForLongestMakeRoom) {
  Seams seams;
  for (LocationId first = 1; first < 1000; first += 20)
    for (const bool coin : {false, false, true, false}) seams.note_new(with_branch(coin, first));

  EXPECT_EQ(flushed_after(seams, with_branch(true, 981)), 10u);
  EXPECT_EQ(flushed_after(seams, with_branch(true, 1)), 0u);
}

}  // namespace
}  // namespace torch_lazy
