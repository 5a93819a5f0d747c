// Names for what a device finds wrong after the host has gone on.
//
// A device that keeps current_submission() with each command, and raises by raise_late() what went
// wrong with one, tells the operation and the line of the program that the command came from,
// whatever operation the host was waiting in. Where commands are functions, named() does both.
//
// Threads: any. One lock, a leaf, guards the table of submissions.
#pragma once

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "base/api.h"

namespace torch_lazy {

// The operation for which a thread gives work to the device: a number, of which the latest 16,384
// are remembered. Each call of current_submission() takes a new one.
using Submission = uint64_t;
constexpr Submission kNoSubmission = 0;

// That of the calling thread's operation; kNoSubmission outside of one.
TORCH_LAZY_API Submission current_submission();

// What the submission's work came to is not used: what went wrong with it is not to be told, as far
// as the submission is remembered.
TORCH_LAZY_API void retract(Submission submission);
TORCH_LAZY_API bool is_retracted(Submission submission);

// Raises the error again, and tells the user which operation it comes from, as far as that is still
// known: the first one, where a command does several. A c10::Error keeps its type, and is changed,
// so each is raised by one thread; a std::runtime_error becomes one, which is the same to Python,
// and what is neither is raised as it is.
[[noreturn]] TORCH_LAZY_API void raise_late(Submission submission, const std::exception_ptr& error);

// The command, which raises what it raises by raise_late(), for the operation of this thread now.
TORCH_LAZY_API std::function<void()> named(std::function<void()> command);

// Of a backend whose device has no other way to tell: called each time that the host has waited for
// the device, on the thread that waited; raises what went wrong there since. Set once.
TORCH_LAZY_API void set_late_failure_finder(void (*raise_found)());

// A device did not take work that it was given: none of it has begun, and nothing that was given to
// it before has failed. For backends to raise; the window's operations are then run instead.
class TORCH_LAZY_API RefusedWork : public c10::Error {
  using c10::Error::Error;
};

// ------------------------------------------------------------------- for the core

// Raises what the finder has found. To be called after every wait for the device.
inline void raise_found_failures();

struct SubmittedOperation {
  const std::string* name = nullptr;  // never freed
  uint64_t location = 0;              // a LocationId
};

// Tells the calling thread's operation, and what a location is called: the core's, from above. Set
// once, when the core is loaded and no device has work.
struct SubmissionNames {
  SubmittedOperation (*current)() = nullptr;
  std::string (*location)(uint64_t) = nullptr;
};
void set_submission_names(const SubmissionNames& names);

// Adds the operation, "deferred operation aten::neg", and its line to what the error says, unless
// it has been told one before.
void name_operation(c10::Error& error, const std::string& operation, const std::string& location);
bool names_operation(const c10::Error& error);

// ---------------------------------------------------------------- implementation

namespace detail {
inline constinit std::atomic<void (*)()> late_failure_finder{nullptr};
}  // namespace detail

inline void raise_found_failures() {
  if (const auto raise_found = detail::late_failure_finder.load(std::memory_order_acquire))
    raise_found();
}

}  // namespace torch_lazy
