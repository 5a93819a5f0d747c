// What is said of the first operation that no known trace goes on with.

#include <gtest/gtest.h>

#include "follow_window.h"
#include "tape_builder.h"
#include "trace/matcher.h"

namespace torch_lazy {
namespace {

using tests::follow;
using tests::Handle;
using tests::TapeBuilder;

// Follows the known window with a recording, until an operation does not match.
std::string guard_failure(const TapeBuilder& known, const TapeBuilder& recorded,
                          DynamicScalars dynamic_scalars = {}) {
  KnownTraces traces;
  traces.insert(std::make_shared<CompiledTrace>(
                    known.tape.prefix(known.tape.size()), std::move(dynamic_scalars),
                    std::vector<bool>(known.tape.storages), TraceConditions()),
                std::nullopt);
  Matcher matcher;
  matcher.start(&traces);
  const Tape tape = follow(matcher, recorded.tape, recorded.tape.size());
  return tape.is_open() ? matcher.why_not(tape) : "";
}

// exp, then another operator.
TapeBuilder exp_and(const char* name, const char* overload = "",
                    const std::vector<TapeBuilder::Argument>& more = {}) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 3}));
  std::vector<TapeBuilder::Argument> arguments{window.call("aten::exp", "", {x})[0]};
  arguments.insert(arguments.end(), more.begin(), more.end());
  window.call(name, overload, arguments);
  return window;
}

TEST(GuardFailure, NamesBothOperators) {
  EXPECT_EQ(guard_failure(exp_and("aten::sin"), exp_and("aten::cos")),
            "guard failed at operation 1: expected aten::sin # <unknown>, recorded aten::cos # "
            "<unknown>; first difference: the operator");
}

TEST(GuardFailure, NamesTheFirstArgumentThatDiffers) {
  const auto add = [](double alpha) {
    return exp_and("aten::add", "Scalar", {c10::IValue(2.0), c10::IValue(alpha)});
  };

  EXPECT_EQ(guard_failure(add(3.0), add(4.0)),
            "guard failed at operation 1: expected aten::add.Scalar # <unknown>, recorded "
            "aten::add.Scalar # <unknown>; first difference: argument 2 'alpha': expected 3., "
            "recorded 4.");
}

TEST(GuardFailure, ShowsHowInputsDiffer) {
  TapeBuilder known, recorded;
  known.call("aten::exp", "", {known.input(at::ones({2, 3}))});
  recorded.call("aten::exp", "", {recorded.input(at::ones({4}))});

  EXPECT_EQ(guard_failure(known, recorded),
            "guard failed at operation 0: expected aten::exp # <unknown>, recorded aten::exp # "
            "<unknown>; first difference: argument 0 'self': expected input Float [2, 3] strides "
            "[3, 1] in new storage 0, recorded input Float [4] strides [1] in new storage 0");
}

TEST(GuardFailure, ShowsHowInputsLieInWhatIsWritten) {
  const auto write = [](int64_t other) {
    TapeBuilder window;
    const at::Tensor base = at::ones({9});
    const Handle x = window.input(base.narrow(0, 0, 2)), y = window.input(base.narrow(0, other, 2));
    window.call("aten::add_", "Tensor", {x, y, 1});
    return window;
  };

  const std::string failure = guard_failure(write(4), write(6));

  EXPECT_NE(failure.find("where inputs lie in what is written: expected storage 0 at 0 [16], "
                         "recorded storage 0 at 0 [24] (bytes)"),
            std::string::npos)
      << failure;
}

TEST(GuardFailure, PassesOverDynamicScalars) {
  const auto add = [](double other, double alpha) {
    return exp_and("aten::add", "Scalar", {c10::IValue(other), c10::IValue(alpha)});
  };
  const TapeBuilder known = add(0.0, 3.0);
  const uint32_t other = dynamic_scalar_words(known.tape).at(0);

  EXPECT_NE(guard_failure(known, add(2.0, 4.0), {{other, other}})
                .find("first difference: argument 2 'alpha': expected 3., recorded 4."),
            std::string::npos);
}

TEST(GuardFailure, SaysWhereTheKnownWindowEnds) {
  TapeBuilder known;
  known.call("aten::exp", "", {known.input(at::ones({2, 3}))});

  EXPECT_EQ(guard_failure(known, exp_and("aten::cos")),
            "guard failed at operation 1: expected the end of the window, recorded aten::cos # "
            "<unknown>");
}

}  // namespace
}  // namespace torch_lazy
