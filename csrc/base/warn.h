// Warnings from any thread and any call, shown as Python warnings where there is a Python.
#pragma once

#include <string>

namespace torch_lazy {

// Must be called without the recording lock: it may take the GIL.
void warn(const std::string& message);

// For threads that have nobody to raise to: a warning that a filter turns into an error is printed.
void warn_in_background(const std::string& message) noexcept;

// How warn() shows a message; c10's own warning handler until it is set.
using WarningSink = void (*)(const std::string& message);
void set_warning_sink(WarningSink sink);

}  // namespace torch_lazy
