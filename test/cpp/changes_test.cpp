// Which operations of new windows are given something of another size each time.

#include "trace/changes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tape_builder.h"
#include "trace/flush_reason.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::TapeBuilder;

constexpr size_t kRepeating = 10;

// Layers of operations on matrices of that width, behind each of which two read a cache.
Tape decode(int64_t length, size_t repeating = kRepeating, int64_t width = 3) {
  TapeBuilder builder;
  Handle x = builder.input(at::ones({2, width}));
  for (int layer = 0; layer < 2; ++layer) {
    for (LocationId i = 0; i < repeating; ++i)
      x = builder.call(i % 2 == 0 ? "aten::neg" : "aten::abs", "", {x}, 1 + i)[0];
    const Handle cache = builder.call("aten::exp", "", {builder.input(at::ones({length}))}, 50)[0];
    builder.call("aten::sum", "", {cache, c10::IValue()}, 51);
  }
  return builder.tape.prefix(builder.tape.size());
}

// A step that is one window.
Changes::Found note_step(Changes& changes, const Tape& window) {
  Changes::Found found = changes.note_new(window);
  changes.note_end_of_stretch();
  return found;
}

// Of the first window the lines are new, of the second the operations.
Changes with_known_operations() {
  Changes changes;
  for (const int64_t length : {1, 2}) note_step(changes, decode(length));
  return changes;
}

std::vector<size_t> places(const Changes::Found& found) {
  std::vector<size_t> places;
  for (const Border& border : found.borders) places.push_back(border.at);
  return places;
}

TEST(Changes, AreFoundInEnoughWindows) {
  Changes changes = with_known_operations();
  for (int64_t length = 3; length < 2 + Changes::kLeastStretches; ++length) {
    const Changes::Found found = note_step(changes, decode(length));
    EXPECT_EQ(found.likely, length > 3);
    EXPECT_EQ(places(found), std::vector<size_t>());
  }

  const Changes::Found found = note_step(changes, decode(2 + Changes::kLeastStretches));

  EXPECT_EQ(places(found), (std::vector<size_t>{10, 12, 22}));
}

TEST(Changes, AreKnownByWhatStandsBeforeTheirBorders) {
  Changes changes = with_known_operations();
  for (int64_t length = 3; length < 2 + Changes::kLeastStretches; ++length)
    note_step(changes, decode(length));

  const std::vector<Border> borders = note_step(changes, decode(30)).borders;

  ASSERT_EQ(borders.size(), 3u);
  EXPECT_EQ(borders[0].known_by(), Border::kMostKnownBy);
  EXPECT_FALSE(borders[0].is_known_by_all());
  EXPECT_FALSE(borders[0].ends_change);
  EXPECT_EQ(borders[1].known_by(), 2u);
  EXPECT_TRUE(borders[1].is_known_by_all());
  EXPECT_TRUE(borders[1].ends_change);
}

TEST(Changes, OfSizesThatWereMetAreNone) {
  Changes changes;
  for (int64_t length = 3; length < 10; ++length) note_step(changes, decode(length));

  EXPECT_FALSE(note_step(changes, decode(5)).likely);
}

TEST(Changes, OfSizesThatWereMetInTheSameStepAreFound) {
  Changes changes = with_known_operations();
  Changes::Found found;
  for (int64_t length = 3; length < 3 + Changes::kLeastStretches; ++length) {
    changes.note_new(decode(length, /*repeating=*/0));
    found = note_step(changes, decode(length));
  }

  EXPECT_EQ(places(found), (std::vector<size_t>{10, 12, 22}));
}

TEST(Changes, OfOneStepAreNone) {
  Changes changes = with_known_operations();
  for (int64_t length = 3; length < 20; ++length)
    EXPECT_FALSE(changes.note_new(decode(length)).likely);
}

TEST(Changes, AreFoundInAStepThatDoesNotEnd) {
  Changes changes = with_known_operations();
  Changes::Found found;
  for (int64_t length = 3; length < 500; ++length) found = changes.note_new(decode(length));

  EXPECT_EQ(places(found), (std::vector<size_t>{10, 12, 22}));
}

TEST(Changes, OfAllOperationsAreNone) {
  Changes changes;
  for (int64_t width = 3; width < 20; ++width)
    EXPECT_FALSE(note_step(changes, decode(width, kRepeating, width)).likely);
}

TEST(Changes, BetweenFewOperationsThatRepeatAreNone) {
  Changes changes;
  for (int64_t length = 3; length < 20; ++length)
    EXPECT_FALSE(note_step(changes, decode(length, kLeastOfAWindow - 1)).likely);
}

}  // namespace
}  // namespace torch_lazy
