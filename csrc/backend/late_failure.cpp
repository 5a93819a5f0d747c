#include "backend/late_failure.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/fork.h"

namespace torch_lazy {
namespace {

constexpr size_t kRemembered = 16384;
constexpr char kRaisedBy[] = "raised by the ";

struct Submitted {
  Submission number = kNoSubmission;
  SubmittedOperation operation;
  bool retracted = false;
};

struct Submissions {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what follows
  Submission last = kNoSubmission;
  std::unique_ptr<std::array<Submitted, kRemembered>> latest;  // none before the first
};

Submissions& submissions() {
  static auto& instance = *new Submissions;
  return instance;
}

// What is made during a fork is not covered by it.
[[maybe_unused]] Submissions& late_failure_made_at_load = submissions();

SubmissionNames& names() {
  static SubmissionNames instance;
  return instance;
}

// Null where it is not remembered. The lock is held.
Submitted* find(Submissions& all, Submission submission) {
  if (submission == kNoSubmission || !all.latest) return nullptr;
  Submitted& found = (*all.latest)[submission % kRemembered];
  return found.number == submission ? &found : nullptr;
}

std::optional<SubmittedOperation> operation_of(Submission submission) {
  Submissions& all = submissions();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const Submitted* const found = find(all, submission);
  return found ? std::optional(found->operation) : std::nullopt;
}

}  // namespace

Submission current_submission() {
  if (!names().current) return kNoSubmission;
  const SubmittedOperation operation = names().current();
  if (!operation.name) return kNoSubmission;
  Submissions& all = submissions();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!all.latest) all.latest = std::make_unique<std::array<Submitted, kRemembered>>();
  const Submission number = ++all.last;
  (*all.latest)[number % kRemembered] = {number, operation};
  return number;
}

void retract(Submission submission) {
  Submissions& all = submissions();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (Submitted* const found = find(all, submission)) found->retracted = true;
}

bool is_retracted(Submission submission) {
  Submissions& all = submissions();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const Submitted* const found = find(all, submission);
  return found && found->retracted;
}

void raise_late(Submission submission, const std::exception_ptr& error) {
  const std::optional<SubmittedOperation> operation = operation_of(submission);
  if (!operation) std::rethrow_exception(error);
  const auto name = [&](c10::Error& raised) {
    name_operation(raised, "operation " + *operation->name, names().location(operation->location));
  };
  try {
    std::rethrow_exception(error);
  } catch (c10::Error& raised) {
    name(raised);
    throw;
  } catch (const std::runtime_error& raised) {  // as bindings of drivers raise
    c10::Error told({__func__, __FILE__, uint32_t(__LINE__)}, raised.what());
    name(told);
    throw told;
  }
}

std::function<void()> named(std::function<void()> command) {
  return [submission = current_submission(), command = std::move(command)] {
    try {
      command();
    } catch (...) {
      raise_late(submission, std::current_exception());
    }
  };
}

// What the finder looks at belongs to a device, of which a child has none.
[[maybe_unused]] const bool forgotten_by_children = (register_at_fork(
                                                         LockOrder::kLeaf, [] {},
                                                         [](bool in_child) {
                                                           if (in_child)
                                                             detail::late_failure_finder = nullptr;
                                                         }),
                                                     true);

void set_late_failure_finder(void (*raise_found)()) {
  detail::late_failure_finder.store(raise_found, std::memory_order_release);
}

void set_submission_names(const SubmissionNames& of_core) {
  names() = of_core;
}

void name_operation(c10::Error& error, const std::string& operation, const std::string& location) {
  if (names_operation(error)) return;
  // Two, because c10 puts a single context on the line of the message itself.
  error.add_context(kRaisedBy + operation);
  error.add_context("recorded at " + location);
}

bool names_operation(const c10::Error& error) {
  return std::any_of(error.context().begin(), error.context().end(),
                     [](const std::string& context) { return context.starts_with(kRaisedBy); });
}

}  // namespace torch_lazy
