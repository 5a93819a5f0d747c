// Which trace a window is expected to be from how it begins and how the last ones ended.

#include <gtest/gtest.h>

#include "tape_builder.h"
#include "trace/matcher.h"

namespace torch_lazy {
namespace {

using testing::Handle;
using testing::TapeBuilder;

// exp, then these operators one after the other.
TapeBuilder exp_and(const std::vector<const char*>& names) {
  TapeBuilder window;
  Handle x = window.call("aten::exp", "", {window.input(at::ones({2, 3}))})[0];
  for (const char* name : names) x = window.call(name, "", {x})[0];
  return window;
}

std::shared_ptr<CompiledTrace> trace_of(const TapeBuilder& window) {
  return std::make_shared<CompiledTrace>(window.tape.prefix(window.tape.size()), DynamicScalars(),
                                         std::vector<bool>(window.tape.storages),
                                         TraceConditions());
}

class ExpectedTrace : public ::testing::Test {
 protected:
  ExpectedTrace() {
    traces.insert(sine, std::nullopt);
    traces.insert(cosine, std::nullopt);
  }

  // What is expected when so many operations of the window are recorded.
  std::shared_ptr<CompiledTrace> expected(const TapeBuilder& window, size_t operations) {
    Matcher matcher;
    matcher.start(traces);
    return matcher.expected(window.tape.prefix(operations), WindowHistory());
  }

  const TapeBuilder sine_window = exp_and({"aten::sin", "aten::abs"});
  const TapeBuilder cosine_window = exp_and({"aten::cos", "aten::abs"});
  const std::shared_ptr<CompiledTrace> sine = trace_of(sine_window);
  const std::shared_ptr<CompiledTrace> cosine = trace_of(cosine_window);
  KnownTraces traces;
};

TEST_F(ExpectedTrace, IsNoneBeforeAWindowThatBeganSoHasRun) {
  EXPECT_EQ(expected(sine_window, 1), nullptr);
}

TEST_F(ExpectedTrace, IsWhatTheLastWindowThatBeganSoWas) {
  traces.note_end(sine_window.tape, sine);

  EXPECT_EQ(expected(sine_window, 1), sine);
}

TEST_F(ExpectedTrace, IsNoneWhereTheWindowHasLeftIt) {
  traces.note_end(sine_window.tape, sine);

  EXPECT_EQ(expected(cosine_window, 2), nullptr);
}

TEST_F(ExpectedTrace, IsNoneWhereTheLastWindowWasAnotherThanTheOneBeforeIt) {
  traces.note_end(sine_window.tape, sine);
  traces.note_end(cosine_window.tape, cosine);

  EXPECT_EQ(expected(cosine_window, 1), nullptr);
}

TEST_F(ExpectedTrace, IsNoneAfterAWindowThatWasAnotherAndRanByOperation) {
  traces.note_end(sine_window.tape, sine);
  traces.note_wrong_guess(cosine_window.tape);

  EXPECT_EQ(expected(sine_window, 1), nullptr);
}

TEST_F(ExpectedTrace, IsThereAgainWhenTwoWindowsWereAlike) {
  traces.note_end(sine_window.tape, sine);
  traces.note_end(cosine_window.tape, cosine);
  traces.note_end(cosine_window.tape, cosine);

  EXPECT_EQ(expected(cosine_window, 1), cosine);
}

}  // namespace
}  // namespace torch_lazy
