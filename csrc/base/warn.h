// Warnings from any thread and any call, shown as Python warnings where there is a Python.
#pragma once

#include <exception>
#include <string>

#include "base/api.h"

namespace torch_lazy {

// Must be called without the recording lock: it may take the GIL.
void warn(const std::string& message);

// For threads that no caller waits for: a warning that a filter turns into an error is printed. In
// pausable work (base/fork.h) it must be called at a safe point.
void warn_in_background(const std::string& message) noexcept;

// The first line of an error's message: others are where it was raised.
std::string first_line(const std::exception& error);

// How warn() shows a message; c10's own warning handler until it is set.
using WarningSink = void (*)(const std::string& message);
TORCH_LAZY_MODULE_API void set_warning_sink(WarningSink sink);

}  // namespace torch_lazy
