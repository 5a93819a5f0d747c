// How the threads of a GPU share the lanes' dimension of a kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/loop_analysis.h"
#include "codegen/loop_ir.h"
#include "codegen/sweeps.h"

namespace torch_lazy::codegen {

// Of a kernel called with these sizes, on a device whose blocks can have `shared_bytes` of shared
// memory. What it depends on are orders of magnitude, so that one source still serves many shapes.
ThreadLoop choose_thread_loop(const Kernel& kernel, const std::vector<int64_t>& sizes,
                              int64_t shared_bytes);

// Threads along x for rows of so few elements, or so few columns, that a warp would be half idle or
// more; else 0. See ThreadLoop::threads.
int threads_of_few(int64_t elements);

// Threads that a block has for a row of so many elements where there are few rows, or some more or
// fewer: what a kernel's loads allow is not known yet.
int64_t threads_of_long_row(int64_t elements);

// Fewer threads than these in all leave most devices idle, which have a hundred multiprocessors or
// more.
constexpr int64_t kDeviceThreads = 32768;

// Reduction dimensions inside of others that are shorter leave a block's threads idle, see
// ThreadLoop::flat.
constexpr int64_t kLeastNested = 256;

// Threads along x and y of a block, at most. The printed kernel says so to its compiler, which
// gives out registers accordingly.
int most_threads(const Kernel& kernel);

// Of dynamic shared memory that a block is launched with.
int64_t shared_bytes(const Kernel& kernel);

// What a kernel that holds its rows keeps of them.
Spilling spilling_of_held_rows(const Kernel& kernel);

// Work items of the kernel, whose thread_loop is chosen, where `transposed`.
int64_t transposed_work_items(const Kernel& kernel, const std::vector<int64_t>& sizes);

}  // namespace torch_lazy::codegen
