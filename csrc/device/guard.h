// For those who wait for the execution device and do not ask device lazy: PyTorch's own streams,
// events and functions of that device, which know of no pending work.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>
#include <utility>

#include "base/api.h"

namespace torch_lazy {

// Runs what is pending, so that whatever waits for the device from now on waits for it. Nothing
// where lazy tensors live on the CPU, whose streams and events are device lazy's.
TORCH_LAZY_MODULE_API void submit_to_device();
// The same of one stream of that device; of the current one where none is given.
TORCH_LAZY_MODULE_API void submit_to_stream(
    std::optional<std::pair<c10::DeviceIndex, c10::StreamId>> place);

// To be called when the device was waited for: raises what went wrong there.
TORCH_LAZY_MODULE_API void raise_failures_of_device();

}  // namespace torch_lazy
