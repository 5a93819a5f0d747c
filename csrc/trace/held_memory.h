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

// How much of that may be dead inputs, which eager would have freed, when a window on the CPU keeps
// so many bytes of them and has so many to make. A loop that brings its data and reads nothing back
// leaves nothing but dead inputs, and has a gibibyte of them in no time. What a program changes as
// a whole, all weights of a model, is as much dead as it is alive. So it is 128 MiB, or what is
// alive, rounded up to a power of two, so that a window seldom ends elsewhere than before. Under
// `deterministic` algorithms what other threads have allocated is not looked at.
int64_t most_dead_bytes(int64_t dead, int64_t pending, bool deterministic);

}  // namespace torch_lazy
