// What is expected after the windows before.

#include "trace/window_history.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace torch_lazy {
namespace {

using Trace = std::shared_ptr<CompiledTrace>;

Trace new_trace() {
  return std::make_shared<CompiledTrace>(Tape(), DynamicScalars(), std::vector<bool>(),
                                         TraceConditions());
}

Trace expected(const WindowHistory& history) {
  const WindowHistory::Guess* const guess = history.next();
  return guess && !guess->ended_otherwise ? guess->trace.lock() : nullptr;
}

TEST(WindowHistory, AStepThatWasSeenIsExpectedWindowByWindow) {
  const Trace layer = new_trace(), last_layer = new_trace(), optimizer = new_trace();
  const std::vector<Trace> step{layer, layer, layer, last_layer, optimizer};
  WindowHistory history;
  for (int i = 0; i < 3; ++i)
    for (const Trace& window : step) history.note_end(window, false);

  for (const Trace& window : step) {
    EXPECT_EQ(expected(history), window);
    history.note_end(window, false);
  }
}

TEST(WindowHistory, NothingIsExpectedAfterWindowsThatAreNew) {
  const Trace a = new_trace(), b = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(a, false);
  history.note_end(b, false);

  EXPECT_EQ(history.next(), nullptr);
}

TEST(WindowHistory, AWindowThatCameOtherwiseHasToBeSeenTwiceInARow) {
  const Trace a = new_trace(), b = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(a, false);
  history.note_end(b, /*wrong=*/true);
  for (int i = 0; i < 8; ++i) history.note_end(a, false);

  ASSERT_NE(history.next(), nullptr);
  EXPECT_TRUE(history.next()->was_wrong);
  EXPECT_EQ(expected(history), nullptr);
  for (int i = 0; i < 2; ++i) history.note_end(a, false);
  EXPECT_EQ(expected(history), a);
  EXPECT_TRUE(history.next()->was_wrong) << "it is not trusted any more";
}

TEST(WindowHistory, ATraceThatIsGoneIsNotExpected) {
  Trace a = new_trace();
  WindowHistory history;
  for (int i = 0; i < 10; ++i) history.note_end(a, false);
  a.reset();

  EXPECT_EQ(expected(history), nullptr);
}

}  // namespace
}  // namespace torch_lazy
