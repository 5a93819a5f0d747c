// What compiled kernels refer to.
#pragma once

#include "simt/access_monitor.h"

namespace torch_lazy::simt {

class BlockRunner;

// The address of a function or variable of the emulator, or null.
void* device_function(const char* name);

// Whose threads call the functions.
void set_runner(BlockRunner* runner);
// threadIdx and its like.
void set_dimensions(Dim3 grid, Dim3 block);
void set_block_index(Dim3 index);
void set_thread_index(Dim3 index);

}  // namespace torch_lazy::simt
