// How much memory a deferring window may keep alive longer than eager would.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace torch_lazy {

// Bytes: Config::window_bytes, or where that is 0 a sixteenth of the memory of the execution device
// of that index, and 1 GiB at least. What is asked for here is the memory of large intermediate
// results: on a GPU of 80 GB a window of 1 GiB would end within a layer. 1 GiB where a device does
// not tell, and on the CPU, whose memory others use too.
int64_t most_held_bytes(c10::DeviceIndex device);

}  // namespace torch_lazy
