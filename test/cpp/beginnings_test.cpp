// Which windows are familiar while they are being recorded.

#include "trace/beginnings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tape_builder.h"

namespace torch_lazy {
namespace {

using testing::Handle;
using testing::number;
using testing::TapeBuilder;

// x * factor, then the operators in order.
Tape window_of(double factor, const std::vector<std::string>& operators) {
  TapeBuilder window;
  Handle x = window.input(at::ones({3}));
  x = window.call("aten::mul", "Tensor", {x, number(factor)})[0];
  for (const std::string& name : operators) x = window.call(("aten::" + name).c_str(), "", {x})[0];
  return window.tape;
}

// Records the tape operation by operation; after how many operations it stopped being familiar, or
// -1.
int unfamiliar_after(Beginnings& beginnings, const Tape& tape) {
  beginnings.start();
  int found = -1;
  for (size_t i = 1; i <= tape.size(); ++i)
    if (!beginnings.follow(tape.prefix(i)) && found < 0) found = int(i);
  return found;
}

TEST(Beginnings, AWindowThatBeginsAsNoneBeforeIsUnfamiliarAtOnce) {
  Beginnings beginnings;

  EXPECT_EQ(unfamiliar_after(beginnings, window_of(2, {"relu", "exp"})), 1);
}

TEST(Beginnings, AWindowThatRepeatsAnEarlierOneIsFamiliarToItsEnd) {
  Beginnings beginnings;
  const Tape window = window_of(2, {"relu", "exp", "neg", "abs", "sin", "cos"});
  unfamiliar_after(beginnings, window);

  EXPECT_EQ(unfamiliar_after(beginnings, window), -1);
}

TEST(Beginnings, AWindowIsUnfamiliarSoonAfterItLeavesTheEarlierOnes) {
  Beginnings beginnings;
  unfamiliar_after(beginnings, window_of(2, {"relu", "exp", "neg", "abs", "sin", "cos"}));

  EXPECT_EQ(unfamiliar_after(beginnings, window_of(2, {"relu", "neg", "neg", "abs"})), 4);
}

TEST(Beginnings, NumbersThatMayBePromotedMakeNoDifference) {
  Beginnings beginnings;
  unfamiliar_after(beginnings, window_of(2, {"relu"}));

  EXPECT_EQ(unfamiliar_after(beginnings, window_of(3, {"relu"})), -1);
}

TEST(Beginnings, OperationsPassedOverCountAsIfTheyHadBeenFollowed) {
  Beginnings beginnings;
  const Tape window = window_of(2, {"relu", "exp", "neg"});
  unfamiliar_after(beginnings, window);

  beginnings.start();

  EXPECT_TRUE(beginnings.follow(window));
}

}  // namespace
}  // namespace torch_lazy
