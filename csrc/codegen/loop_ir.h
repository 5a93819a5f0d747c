// The loop IR: what one kernel computes, before any target's syntax. Values only; no PyTorch.
//
// A kernel is a nest of loops over *parallel* dimensions (what is in the results) around
// *reduction* dimensions (what is summed away, or only stepped through by each work item; may be
// none), an expression DAG over them, and stores. Sizes, strides and offsets are `Size`s: slots of
// the kernel's integer arguments, or constants where the code is to be specialised on them (a
// stride of 0 or 1 always is). Numbers of the program (1.01, eps, lr) are slots of the double
// arguments, so that a changed number needs no new kernel.
//
// Kernel ABI, on every target:
//
//   void name(void* const* pointers, const int64_t* sizes, const double* numbers,
//             int64_t begin, int64_t end)
//
// `pointers` are the buffers in order, then the scratch of the calling thread where the printed
// kernel wants some (printer.h). [begin, end) counts *work items*, all of which are independent:
//  - Axis::kReduction: a work item is one point of the parallel dimensions, flattened (the last
//    fastest); the vector lanes run along the last reduction dimension.
//  - Axis::kParallel: the lanes run along the last parallel dimension, which is cut into blocks of
//  `block`
//    elements: work item = (flattened other parallel dimensions) * ceil(last / block) + block
//    index.
// Of a dimension that is jammed (Kernel::jam) so many steps, the last ones fewer, are one point.
//
// Phases: an expression that depends on a reduction over the reduction dimensions and itself varies
// along them can only be evaluated in a later sweep over them. The printer derives the sweeps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/primitive.h"

namespace torch_lazy::codegen {

// The loop IR's operations and types are the primitives that the passes have chosen.
using namespace primitive;

struct Size {
  bool slot = false;
  int64_t value = 0;  // the number itself, or the index of a slot

  static Size constant(int64_t value) { return {false, value}; }
  static Size of_slot(uint32_t index) { return {true, index}; }
  bool is(int64_t number) const { return !slot && value == number; }
  bool operator==(const Size&) const = default;
};

using ExprId = int32_t;

// Where an element lies: offset + sum of index * stride over the dimensions, + sum of indirect
// values * strides; all in elements of the buffer's type.
struct Access {
  struct Indirect {
    ExprId index;  // of type kInt64; checked before the kernel runs, never out of range here
    Size stride;
  };
  Size offset;
  std::vector<Size> strides;  // one per dimension: parallel, then reduction
  std::vector<Indirect> indirect;
};

struct Expr {
  Op op = Op::kInteger;
  Type type = Type::kFloat;       // of the result
  std::vector<ExprId> arguments;  // all smaller than this expression's own id
  // kLoad:
  uint32_t buffer = 0;
  Access access;
  // Only where it is true is memory touched; elsewhere the value is 0. kNoPredicate: always.
  ExprId predicate = -1;
  // kNumber, kInteger:
  Size value;
  // kIndex:
  uint32_t dimension = 0;
};

constexpr ExprId kNoPredicate = -1;

struct Store {
  uint32_t buffer = 0;
  // Without reduction dimensions' strides where `expr` is one result of them; one that is stored
  // for each of their elements has them, though it does not vary along them.
  Access access;
  ExprId expr = 0;
  ExprId predicate = kNoPredicate;
  // Goes past the caches, where a target can: nothing reads the result before it would have left
  // them anyway.
  bool nontemporal = false;
};

struct Buffer {
  Type type = Type::kFloat;
  std::string name;  // what the printed source calls it: "in0", "weight", "mul_3"
  bool written = false;
  // No other buffer of the kernel overlaps it, so that loads may be reordered over stores to other
  // buffers. A buffer that is updated in place is one Buffer, loaded and stored. Overlap, by
  // another buffer or by loads of the same one, is only allowed where each element is read before
  // it is written, in the same work item and lane: a kernel loads before it stores, element by
  // element.
  bool exclusive = true;
  // Where a target has memory of its own: one element of the host's, which a launch takes by value,
  // in the place of its address.
  bool immediate = false;
};

enum class Axis : uint8_t { kParallel, kReduction };

// How the threads of a GPU share the lanes' dimension. A CPU does not look at it.
struct ThreadLoop {
  static constexpr int kWarp = 32;           // threads
  static constexpr int kMostThreads = 1024;  // of a block
  // Neighbouring elements that a thread loads and stores by one instruction, where memory is
  // aligned as it wants. 1: a thread's elements lie apart, its neighbours' between.
  int packet = 1;
  int packets = 1;  // that a thread loads before it computes with the first
  // The packets of `threads` threads are a whole row: what a sweep loads or computes stays in
  // registers for later ones. For Axis::kReduction with one reduction dimension that is no chunk.
  bool holds_row = false;
  // Threads along x, where their number is the kernel's and not the launch's; 0: the launch's. A
  // power of two, fewer than a warp's for rows and columns that are as few (threads_of_few()):
  // several rows, or steps of columns, then share a warp.
  int threads = 0;
  // The steps of all reduction dimensions are those of one loop, which the threads share, and each
  // has its indices by division: the innermost dimension alone would have too few for them.
  bool flat = false;
  // Of a row that is too long for registers, packets of what sweeps load that lie in the block's
  // dynamic shared memory, behind those in registers; a multiple of kStreamedPackets, of which a
  // thread has so many under way. What is longer yet (`has_rest`) is loaded again by each sweep.
  static constexpr int kStreamedPackets = 2;
  int shared_packets = 0;
  bool has_rest = false;
  bool is_long_row() const { return shared_packets > 0 || has_rest; }
  // Threads along y that share the steps of the innermost reduction loop, for Axis::kParallel; they
  // and columns() threads along x do a work item together. 1: none share it.
  static constexpr int kColumns = 32;
  int rows = 1;
  int columns() const { return threads > 0 ? threads : kColumns; }
  // The parallel dimension along which memory is contiguous for loads that it is not along the
  // lanes: a work item is a square of `square` elements along both, a multiple of kColumns, which
  // goes through shared memory, by kRowsOfSquare rows of threads. For Axis::kParallel without
  // reduction dimensions; -1: there is none.
  static constexpr int kRowsOfSquare = 8;
  int transposed = -1;
  int square = kColumns;
  bool narrow = false;  // indices have 32 bits

  bool operator==(const ThreadLoop&) const = default;
};

// Unroll-and-jam, for a CPU: a work item has `steps` neighbouring points of a parallel dimension
// that the lanes do not run along. Where it reduces, each has accumulators of its own, in
// registers, and what does not vary along the dimension is loaded and evaluated once for all of
// them. Where it does not, and they are as many as the lanes, what is contiguous along the
// dimension is loaded as it lies and transposed in registers.
struct Jam {
  static constexpr int kMostVectors = 2;
  int dimension = -1;
  int steps = 1;  // 1: there is none
  // Along the lanes' dimension, that each step has accumulators for.
  int vectors = kMostVectors;

  bool operator==(const Jam&) const = default;
};

struct Kernel {
  std::string name;                   // C identifier, from the operators: "add_gelu_mul"
  std::vector<std::string> comments;  // lines at the head of the source: Python lines, operators
  std::vector<Buffer> buffers;
  std::vector<Size> parallel;   // extents, outermost first
  std::vector<Size> reduction;  // extents, outermost first
  Axis axis = Axis::kParallel;
  Size block =
      Size::constant(0);  // elements; for Axis::kParallel with at least one parallel dimension
  // Where not 0: the last parallel dimension that the lanes do not run along (the last one, or for
  // Axis::kParallel the last but one) counts chunks of one long reduction; chunk i covers
  // [i * extent, min((i + 1) * extent, reduction_total)) of the first reduction dimension, whose
  // extent is the length of a chunk. The index of that dimension is that of the whole: accesses
  // have no stride for the chunk where they have one for the dimension, and kIndex counts from the
  // start of the first chunk, as kReduceArgMax does where there is one reduction dimension.
  Size reduction_total = Size::constant(0);
  std::vector<Expr> exprs;
  std::vector<Store> stores;
  // No accumulator of a floating sum adds up more than kBlockSteps numbers (loop_analysis.h).
  bool short_sums = false;
  // Rows of memory are asked for so many bytes before they are read or written, where a target can.
  // 0: not at all.
  int64_t fetch_ahead_bytes = 0;
  // Two neighbouring vectors are computed at once, for a CPU, where nothing is reduced.
  bool pairs = false;
  ThreadLoop thread_loop;
  Jam jam;
  // More than 1: the loops run over as many sets of buffers, sizes and numbers, one after the other
  // (codegen/batch.h). For a GPU, which takes a launch for them all.
  uint32_t instances = 1;
  uint32_t size_slots = 0;
  uint32_t number_slots = 0;
};

// Readable text, one line a loop, expression or store; the form that tests compare.
std::string to_string(const Kernel& kernel);

// Raises std::invalid_argument that names the kernel and what is wrong: ids out of order, types
// that do not fit, an expression that varies along a reduction dimension stored without its stride,
// ...
void verify(const Kernel& kernel);

}  // namespace torch_lazy::codegen
