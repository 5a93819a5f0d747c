// The one kernel printer: from loop IR to C++ source for a target.
//
// The source is complete: what it uses of the target's prelude (prelude.h) stands before it, the
// vector types and the functions `lazy_...` that the printed statements call. On the CPU a
// value that varies along the lanes' dimension is a vector of `lanes` elements, on CUDA it is a
// thread's own; all else is the same code.
//
// ABI on the CPU:
//
//   extern "C" void name(void* const* pointers, const int64_t* sizes, const double* numbers,
//                        int64_t begin, int64_t end)
//
// pointers: Kernel::buffers in order, then, where scratch_values > 0, the scratch of the calling
// thread, which no other call uses at the same time. In the place of the address of an immediate
// buffer (Buffer::immediate) are the bytes of its one element.
//
// ABI on CUDA:
//
//   extern "C" __global__ void name(const name_arguments arguments, int64_t begin, int64_t end)
//
// `arguments` is a struct of 8-byte fields, by value, as launch_arguments() packs them: pointers,
// size slots, number slots (doubles, or floats: floats_among_numbers()), of each instance, and
// where the work items of several end. Threads (x) of a block work on one work item together,
// blockDim.y items are worked on at a time; a grid of any size will do. A block has at most
// most_threads() (thread_loop.h). blockDim.x is ThreadLoop::threads where that is not 0, a part of
// a warp or, with blockDim.y = 1, more. Else it is 32 or, with blockDim.y = 1, a multiple of 32;
// where it transposes, 32 times ThreadLoop::kRowsOfSquare with one work item at a time. Where
// threads share a work item's steps, ThreadLoop::columns() times `rows`, likewise. Of dynamic
// shared memory a block has shared_bytes(). launch_shape() chooses such a shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/api.h"
#include "codegen/loop_ir.h"
#include "codegen/prelude.h"

namespace torch_lazy::codegen {

struct PrintedKernel {
  std::string source;
  std::string entry;                // the function's name
  std::set<std::string> functions;  // of the prelude; see prelude_for()
  size_t body = 0;                  // where in `source` what stands behind the prelude begins
  uint32_t scratch_values = 0;      // 4-byte values of scratch for each element of a work item
  std::vector<std::string> comments = {};  // the kernel's, for messages where its source has none
};

// Bytes of scratch that a call needs where the product of the reduction extents is `elements`.
TORCH_LAZY_API int64_t scratch_bytes(uint32_t scratch_values, int64_t elements);

// The kernel must pass verify(), which is called where verifies_passes() (base/debug.h).
// Raises std::invalid_argument for CUDA and a kernel with scans.
TORCH_LAZY_API PrintedKernel print_kernel(const Kernel& kernel, const Target& target);

}  // namespace torch_lazy::codegen
