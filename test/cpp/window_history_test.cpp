// What is expected after the windows before.

#include "trace/window_history.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace torch_lazy {
namespace {

using Trace = std::shared_ptr<CompiledTrace>;

const KnownTraces kTraces, kTracesOfAnotherDevice;

Trace new_trace() {
  return std::make_shared<CompiledTrace>(Tape(), DynamicScalars(), std::vector<bool>(),
                                         TraceConditions());
}

Trace expected(const WindowHistory& history) {
  const WindowHistory::Guess* const guess = history.next(&kTraces);
  return guess && !guess->ended_otherwise ? guess->trace.lock() : nullptr;
}

TEST(WindowHistory, AStepThatWasSeenIsExpectedWindowByWindow) {
  const Trace layer = new_trace(), last_layer = new_trace(), optimizer = new_trace();
  const std::vector<Trace> step{layer, layer, layer, last_layer, optimizer};
  WindowHistory history;
  for (int i = 0; i < 3; ++i)
    for (const Trace& window : step) history.note_end(&kTraces, window, false);

  for (const Trace& window : step) {
    EXPECT_EQ(expected(history), window);
    history.note_end(&kTraces, window, false);
  }
}

TEST(WindowHistory, NothingIsExpectedAfterWindowsThatAreNew) {
  const Trace a = new_trace(), b = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(&kTraces, a, false);
  history.note_end(&kTraces, b, false);

  EXPECT_EQ(history.next(&kTraces), nullptr);
}

TEST(WindowHistory, AWindowThatCameOtherwiseHasToBeSeenTwiceInARow) {
  const Trace a = new_trace(), b = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(&kTraces, a, false);
  history.note_end(&kTraces, b, /*dropped=*/true);
  for (int i = 0; i < 8; ++i) history.note_end(&kTraces, a, false);

  ASSERT_NE(history.next(&kTraces), nullptr);
  EXPECT_TRUE(history.next(&kTraces)->was_wrong);
  EXPECT_EQ(expected(history), nullptr);
  for (int i = 0; i < 2; ++i) history.note_end(&kTraces, a, false);
  EXPECT_EQ(expected(history), a);
  EXPECT_TRUE(history.next(&kTraces)->was_wrong) << "it is not trusted any more";
}

TEST(WindowHistory, AWindowOfAnotherDeviceIsNotExpected) {
  const Trace a = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(&kTraces, a, false);

  EXPECT_NE(history.next(&kTraces), nullptr);
  EXPECT_EQ(history.next(&kTracesOfAnotherDevice), nullptr);
}

TEST(WindowHistory, ARunOfTheSameTraceThatWasDroppedWasNoWrongGuess) {
  const Trace a = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(&kTraces, a, false);
  history.note_end(&kTraces, a, /*dropped=*/true);

  EXPECT_EQ(expected(history), a);
  EXPECT_FALSE(history.next(&kTraces)->was_wrong);
}

TEST(WindowHistory, ATraceThatIsGoneIsNotExpected) {
  Trace a = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(&kTraces, a, false);
  a.reset();

  EXPECT_EQ(expected(history), nullptr);
}

}  // namespace
}  // namespace torch_lazy
