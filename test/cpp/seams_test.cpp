// Where windows that never repeat are flushed, because what was before or what follows is always
// the same.

#include "trace/seams.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::TapeBuilder;

// After how many operations it is flushed; 0 where it is not.
size_t flushed_after(Seams& seams, const Tape& tape) {
  for (size_t operations = 1; operations <= tape.size(); ++operations)
    if (const auto seam = seams.find(tape.prefix(operations))) {
      seams.reach(*seam);
      return operations;
    }
  return 0;
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
  int64_t length = 0;  // of a sum: of what it sums
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
  for (const auto& [name, location, factor, length] : operations) {
    if (length > 0)
      builder->call(name, "", {builder->input(at::ones({length})), c10::IValue()}, location);
    else
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
  const size_t few = kLeastOfAWindow - 1;
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

// Three layers, each of which reads a cache of that length behind so many operations.
std::vector<Operation> decoded_step(int64_t length, size_t repeating = 10) {
  std::vector<Operation> operations;
  for (int layer = 0; layer < 3; ++layer) {
    for (size_t i = 0; i < repeating; ++i) operations.push_back({"aten::add", 1 + i / 2});
    operations.push_back({"aten::sum", 100, 1, length});
  }
  return operations;
}

TEST(SeamsOfChanges, AreBeforeAndBehindOperationsOfOtherSizes) {
  Seams seams;
  for (const int64_t length : {2, 3, 4, 5, 6, 7}) windows_of(seams, decoded_step(length));

  EXPECT_EQ(windows_of(seams, decoded_step(8)), (std::vector<size_t>{10, 1, 10, 1, 10, 1}));
}

TEST(SeamsOfChanges, AreFoundInWindowsBehindOneOfTheSameSizes) {
  Seams seams;
  for (const int64_t length : {2, 3, 4, 5, 6, 7}) {
    TapeBuilder layer;
    layer.call("aten::sum", "", {layer.input(at::ones({length})), c10::IValue()}, 100);
    seams.note_new(layer.tape);
    seams.note_flush(FlushReason::kBranch);
    windows_of(seams, decoded_step(length));
  }

  EXPECT_EQ(windows_of(seams, decoded_step(8)), (std::vector<size_t>{10, 1, 10, 1, 10, 1}));
}

TEST(SeamsOfChanges, AreBeforeWhatFollowsThem) {
  const auto sum_of = [](int64_t labels) {
    std::vector<Operation> operations(40, {"aten::add", 1});
    operations.insert(operations.begin(), {"aten::sum", 100, 1, labels});
    return operations;
  };
  Seams seams;
  for (const int64_t labels : {2, 3, 4, 5, 6, 7}) windows_of(seams, sum_of(labels));

  EXPECT_EQ(windows_of(seams, sum_of(8)), (std::vector<size_t>{1, 40}));
}

TEST(SeamsOfChanges, AreNoneWhereFewOperationsRepeat) {
  Seams seams;
  const size_t few = kLeastOfAWindow - 1;
  for (int64_t length = 3; length < 20; ++length) windows_of(seams, decoded_step(length, few));

  EXPECT_EQ(windows_of(seams, decoded_step(20, few)), (std::vector<size_t>{3 * (few + 1)}));
}

TEST(SeamsOfChanges, WithoutWindowsThatRepeatAreNone) {
  Seams seams;
  for (int64_t length = 3; length < 200; ++length) windows_of(seams, decoded_step(length));

  EXPECT_EQ(windows_of(seams, decoded_step(200)), (std::vector<size_t>{33}));
}

TEST(SeamsOfChanges, ThatWereGivenUpHideNoBranches) {
  Seams seams;
  for (int64_t length = 3; length < 200; ++length) windows_of(seams, decoded_step(length));
  const auto with_branch_and_sum = [](bool coin, int64_t length) {
    std::vector<Operation> operations = loop({coin, coin, coin});
    for (Operation& operation : operations) operation.location += 200;
    const std::vector<Operation> layers = decoded_step(length);
    operations.insert(operations.end(), layers.begin(), layers.end());
    return operations;
  };
  for (int64_t length = 200; length < 210; ++length)
    windows_of(seams, with_branch_and_sum(length % 3 == 0, length));

  EXPECT_EQ(windows_of(seams, with_branch_and_sum(true, 210)).front(), 10u);
}

TEST(SeamsOfChanges, BeforeWhichWindowsRepeatStay) {
  Seams seams;
  for (int64_t length = 3; length < 200; ++length)
    windows_of(seams, decoded_step(length), /*repeated=*/length % 20 == 0);

  EXPECT_EQ(windows_of(seams, decoded_step(200)).size(), 6u);
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
