// What is told of a window whose run failed.
#pragma once

#include <c10/core/Device.h>

#include <exception>

#include "tape/tape.h"

namespace torch_lazy {

// The error of a deferred operation: eager's own, and the line that recorded it. An error that a
// device told late is named by its own.
std::exception_ptr with_location(const std::exception_ptr& error, const Tape::Entry& entry);

// What is to be reported of a run that failed although the same operations then succeed: a device
// that runs behind the host tells of what earlier windows left to it wherever one waits, and only
// once. Memory that a plan wants and operations do not is no such news. The operation is the one
// that failed only where each was waited for.
std::exception_ptr device_error(const std::exception_ptr& error, c10::Device device,
                                const Tape::Entry& operation);

// What the backend made of the window failed where the operations themselves do not.
void note_failure_of_executable(const std::exception_ptr& failure);

}  // namespace torch_lazy
