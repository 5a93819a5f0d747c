// Failures that a device finds after the host has gone on tell where they come from.

#include "backend/late_failure.h"

#include <gtest/gtest.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "device/dispatched_operation.h"
#include "ops/operator_info.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

const OperatorInfo& neg() {
  return operator_info("aten::neg", "");
}

// Locations without a code object: what they are called does not matter here.
Tape two_operations() {
  Tape tape;
  for (const auto* op : {&neg(), &operator_info("aten::exp", "")}) {
    tape.begin(op, kNoLocation);
    tape.end();
  }
  return tape;
}

std::exception_ptr failure() {
  return std::make_exception_ptr(c10::Error("the command failed"));
}

std::string told(Submission submission, const std::exception_ptr& error = failure()) {
  try {
    raise_late(submission, error);
  } catch (const std::exception& raised) {
    return raised.what();
  }
  return {};
}

class LateFailure : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_submission_names(); }
};

TEST_F(LateFailure, NamesTheNodeThatTheThreadWorkedForThen) {
  const Tape tape = two_operations();
  Submission submission;
  {
    RunningWindow window(tape.entries(), {}, false);
    window.enter(1);
    submission = current_submission();
    window.enter(0);
  }

  EXPECT_NE(told(submission).find("aten::exp"), std::string::npos) << told(submission);
}

TEST_F(LateFailure, KeepsWhatItWasFirstToldToBe) {
  const Tape tape = two_operations();
  RunningWindow window(tape.entries(), {}, false);
  window.enter(0);
  c10::Error error("the command failed");
  name_operation(error, "aten::mm", "first.py:1");

  const std::string raised = told(current_submission(), std::make_exception_ptr(error));

  EXPECT_NE(raised.find("first.py:1"), std::string::npos) << raised;
  EXPECT_EQ(raised.find("aten::neg"), std::string::npos) << raised;
}

TEST_F(LateFailure, IsRaisedAsItIsOutsideOfAnOperation) {
  EXPECT_EQ(current_submission(), kNoSubmission);
  EXPECT_EQ(told(kNoSubmission).find("raised by"), std::string::npos);
}

TEST_F(LateFailure, IsRaisedAsItIsOnceItsOperationIsForgotten) {
  const Tape tape = two_operations();
  RunningWindow window(tape.entries(), {}, false);
  window.enter(0);
  const Submission first = current_submission();
  for (int i = 0; i < 16384; ++i) current_submission();

  EXPECT_EQ(told(first).find("raised by"), std::string::npos);
}

TEST_F(LateFailure, OfADriversBindingIsNamedToo) {
  const Tape tape = two_operations();
  RunningWindow window(tape.entries(), {}, false);
  window.enter(0);
  const auto error = std::make_exception_ptr(std::runtime_error("the driver is gone"));

  const std::string raised = told(current_submission(), error);

  EXPECT_NE(raised.find("the driver is gone"), std::string::npos) << raised;
  EXPECT_NE(raised.find("aten::neg"), std::string::npos) << raised;
}

TEST_F(LateFailure, OfAnotherTypeKeepsIt) {
  const Tape tape = two_operations();
  RunningWindow window(tape.entries(), {}, false);
  window.enter(0);
  const Submission known = current_submission();

  EXPECT_THROW(raise_late(known, std::make_exception_ptr(std::bad_alloc())), std::bad_alloc);
}

}  // namespace
}  // namespace torch_lazy
