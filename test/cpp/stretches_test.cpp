// Which windows are not parted at seams any more, since they would repeat as a whole.

#include "trace/stretches.h"

#include <gtest/gtest.h>

#include <vector>

#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::TapeBuilder;

Tape tape_from(const char* name) {
  TapeBuilder builder;
  auto y = builder.input(at::ones({3}));
  for (int i = 0; i < 6; ++i) y = builder.call(name, "", {y})[0];
  return builder.tape.prefix(6);
}

const Tape& beginning() {
  static const Tape tape = tape_from("aten::neg");
  return tape;
}

// Two windows with a seam between them, the second of which stands for the path.
void run(Stretches& stretches, uint64_t path) {
  stretches.note_repeated(beginning(), 0);
  stretches.note_flush(true);
  stretches.note_repeated(tape_from("aten::exp"), path);
  stretches.note_flush(false);
}

void run_paths(Stretches& stretches, size_t paths, size_t times) {
  for (size_t i = 0; i < times; ++i) run(stretches, i % paths);
}

TEST(Stretches, ArePartedAtFirst) {
  Stretches stretches;

  EXPECT_TRUE(stretches.are_parted(beginning()));
}

TEST(Stretches, OfFewPathsAreWholeInTheEnd) {
  Stretches stretches;
  run_paths(stretches, 6, 6 + Stretches::kKnownInARow);

  EXPECT_FALSE(stretches.are_parted(beginning()));
}

TEST(Stretches, AreKnownByTheirFirstOperationAlone) {
  Stretches stretches;
  run_paths(stretches, 1, 50);
  ASSERT_FALSE(stretches.are_parted(beginning().prefix(1)));

  for (int i = 0; i < Stretches::kNewInARow; ++i) {
    stretches.note_new(beginning());
    stretches.note_flush(false);
  }

  EXPECT_TRUE(stretches.are_parted(beginning().prefix(1)));
}

TEST(Stretches, OfManyPathsStayParted) {
  Stretches stretches;
  run_paths(stretches, Stretches::kRemembered + 1, 1000);

  EXPECT_TRUE(stretches.are_parted(beginning()));
}

TEST(Stretches, WithNewWindowsStayParted) {
  Stretches stretches;
  for (int i = 0; i < 100; ++i) {
    stretches.note_repeated(beginning(), 0);
    stretches.note_flush(true);
    stretches.note_new(beginning());
    stretches.note_flush(false);
  }

  EXPECT_TRUE(stretches.are_parted(beginning()));
}

TEST(Stretches, ThatBeginOtherwiseStayParted) {
  Stretches stretches;
  run_paths(stretches, 1, 50);

  EXPECT_TRUE(stretches.are_parted(tape_from("aten::abs")));
}

TEST(Stretches, AreWholeAtSeamsFurtherOnToo) {
  Stretches stretches;
  run_paths(stretches, 1, 50);
  stretches.note_repeated(beginning(), 0);
  stretches.note_flush(true);

  EXPECT_FALSE(stretches.are_parted(tape_from("aten::exp")));
}

TEST(Stretches, ThatAreNewAsAWholeArePartedAgain) {
  Stretches stretches;
  run_paths(stretches, 1, 50);
  for (int i = 0; i < Stretches::kNewInARow; ++i) {
    stretches.note_new(beginning());
    stretches.note_flush(false);
  }

  EXPECT_TRUE(stretches.are_parted(beginning()));
  run_paths(stretches, 1, 1 + Stretches::kKnownInARow);
  EXPECT_TRUE(stretches.are_parted(beginning()));  // it takes longer now
  run_paths(stretches, 1, Stretches::kKnownInARow);
  EXPECT_FALSE(stretches.are_parted(beginning()));
}

}  // namespace
}  // namespace torch_lazy
