#include "codegen/thread_loop.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "codegen/divide.h"
#include "codegen/op_cost.h"
#include "codegen/packet_access.h"
#include "codegen/sweeps.h"

namespace torch_lazy::codegen {
namespace {

constexpr int64_t kPacketBytes = 16;  // the widest load and store that a GPU has
constexpr int64_t kMostPacketElements = 8;
// Elements that a thread has under way at once, where computing with them is cheap: enough to wait
// for memory only once, in few registers and little code.
constexpr int64_t kParallelElements = 8;
constexpr int64_t kRowElements = 16;
// Of what a thread of a row loads before it computes, 4-byte values, and with how many of them it
// has no more registers than the 64 that it has in the largest block: more would be spilled.
constexpr int64_t kMostLoadedValues = 32;
constexpr int64_t kLoadedValuesOfLargestBlock = 16;
constexpr int kCheapCost = 40;
// Of a row that is held in registers. As many threads as a block may have have 64 registers each,
// half as many threads twice as many.
constexpr int64_t kHeldByThread = 16;
constexpr int64_t kHeldByThreadOfWarp = 32;
// Of one that costs more an element a warp has no more than other blocks: a softmax of 1,024
// columns with 32 elements a thread takes 104 registers, so that a quarter of the warps are there
// at a time, and 1.08 of the time on an H200.
constexpr int kCheapRowCost = 20;
constexpr int64_t kMostHeldValues = 64;
// The same where the rest of the row is in shared memory. With fewer threads each has more
// registers beside those; fewer yet would keep memory waiting.
constexpr int64_t kThreadsOfLongRow = 512;
constexpr int64_t kValuesOfLongRow = 56;  // with those under way
constexpr int64_t kLeastHeldOfRow = 4;    // a quarter, or it does not pay
// Rows of threads that share the steps of a warp's columns, each with a result at the end. Fewer
// columns have as many more.
constexpr int kRowsOfThreads = 8;
constexpr int64_t kStepsWorthSharing = 16;
constexpr int64_t kMostFoldBytes = int64_t{40} * 1024;  // of the 48 KiB that any kernel may have
// Of both sides of what is transposed; of an element in all loads that are.
constexpr int64_t kLeastTransposed = 8;
constexpr int64_t kMostTransposedBytes = 32;
// Of a large square, whose threads have twice as much under way and whose rows are longer, which
// memory likes better. It wants shared memory, and leaves fewer work items.
constexpr int kLargeSquare = 64;
constexpr int64_t kMostBytesOfLargeSquare = 8;
constexpr int64_t kLeastLargeSquares = 1024;
// A block that shares all steps has eight times as many threads or more, which is worth a division
// for each index, and loads of single elements.
constexpr int64_t kFewThreadsOfRow = ThreadLoop::kMostThreads / 8;

// 4-byte values that an element of all packets is, at least one.
int64_t values_of_packets(const Kernel& kernel) {
  const std::vector<Dimensions> varying = varying_dimensions(kernel);
  int64_t values = 0;
  for (size_t i = 0; i < kernel.exprs.size(); ++i)
    if (is_packet_load(kernel, static_cast<ExprId>(i), varying))
      values += width_of(kernel.exprs[i].type);
  return std::max<int64_t>(values, 1);
}

Dimensions varying_of(const Store& store, const std::vector<Dimensions>& varying) {
  Dimensions of_store = varying_dimensions(store.access, varying);
  for (ExprId operand : operands_of(store)) of_store |= varying[operand];
  return of_store;
}

// In shared memory, of an element of a row.
int64_t held_bytes(const Kernel& kernel, const Schedule& schedule) {
  int64_t bytes = 0;
  for (size_t i = 0; i < kernel.exprs.size(); ++i)
    if (schedule.scratch_places[i] >= 0) bytes += bytes_of(kernel.exprs[i].type);
  return bytes;
}

class ThreadLoopChooser {
 public:
  ThreadLoopChooser(const Kernel& kernel, const std::vector<int64_t>& sizes, int64_t shared_bytes)
      : kernel_(kernel),
        sizes_(sizes),
        shared_bytes_(shared_bytes),
        varying_(varying_dimensions(kernel)) {}

  ThreadLoop choose() {
    loop_.narrow = is_narrow();
    const bool along_rows = kernel_.axis == Axis::kReduction;
    if (lane_dimension(kernel_) == kNoDimension) return loop_;
    loop_.flat = kernel_.reduction.size() > 1 && is_inner_short();
    if (!along_rows && !kernel_.reduction.empty()) {
      loop_.threads = threads_of_few(number(kernel_.parallel.back()));
      if (can_share_steps()) loop_.rows = kRowsOfThreads * ThreadLoop::kColumns / loop_.columns();
      return loop_;
    }
    if (along_rows) loop_.threads = threads_of_few(steps());
    if (loop_.threads > 0 || loop_.flat) return loop_;
    extent_ = number(along_rows ? kernel_.reduction.back() : kernel_.parallel.back());
    loop_.packet = static_cast<int>(packet());
    if (loop_.packet == 1) {
      if (!along_rows) choose_transposed();
      if (!along_rows && loop_.transposed < 0) loop_.threads = threads_of_few(extent_);
      return loop_;
    }
    if (!along_rows) {
      if (cost() <= kCheapCost) set_packets(kParallelElements);
      return loop_;
    }
    const Schedule schedule = make_schedule(kernel_, Spilling::kRegisters);
    if (schedule.sweeps.size() > 1) hold_row(schedule);
    if (schedule.sweeps.size() > 1 && !loop_.holds_row) hold_long_row();
    if (!loop_.holds_row && cost() <= kCheapCost)
      set_packets(std::min(kRowElements, kMostLoadedValues / values_of_packets(kernel_)));
    return loop_;
  }

 private:
  int64_t number(Size size) const { return size.slot ? sizes_[size_t(size.value)] : size.value; }

  // Whether the innermost of several reduction dimensions leaves threads idle: those of a block, or
  // most of the device's, since there are few rows.
  bool is_inner_short() const {
    const int64_t inner = number(kernel_.reduction.back());
    if (reduction_steps() <= inner) return false;  // it is the only one with steps
    if (inner < kLeastNested || kernel_.axis == Axis::kParallel) return inner < kLeastNested;
    const int64_t threads = threads_of_long_row(inner);
    return threads <= kFewThreadsOfRow && 2 * rows() * threads <= kDeviceThreads;
  }

  int64_t rows() const {
    int64_t rows = 1;
    for (Size extent : kernel_.parallel) rows *= number(extent);
    return rows;
  }

  // That threads share.
  int64_t steps() const {
    return loop_.flat ? reduction_steps() : number(kernel_.reduction.back());
  }

  int64_t reduction_steps() const {
    int64_t steps = 1;
    for (Size extent : kernel_.reduction) steps *= number(extent);
    return steps;
  }

  int64_t extent_of(size_t dimension) const {
    const size_t parallel = kernel_.parallel.size();
    if (dimension < parallel) return number(kernel_.parallel[dimension]);
    // Indices of chunks are those of the whole.
    if (dimension == parallel && !kernel_.reduction_total.is(0))
      return number(kernel_.reduction_total);
    return number(kernel_.reduction[dimension - parallel]);
  }

  // The bytes of the widest element in a packet decide, so that the threads of a warp touch
  // neighbouring packets of every buffer. Where another access would leave out elements between
  // those of neighbouring threads, it is better to have these as near as can be.
  int64_t packet() const {
    int64_t widest = 0;
    bool spread = false;
    const auto add = [&](bool is_packet, const Access& access, Type type) {
      if (is_packet) {
        widest = std::max<int64_t>(widest, bytes_of(type));
      } else {
        spread |= !has_index_along_lanes(kernel_, access, varying_);
      }
    };
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
      const auto id = static_cast<ExprId>(i);
      const Expr& expr = kernel_.exprs[i];
      if (expr.op != Op::kLoad || !runs_along(kernel_, varying_[i])) continue;
      add(is_packet_load(kernel_, id, varying_), expr.access, expr.type);
    }
    for (const Store& store : kernel_.stores) {
      if (!runs_along(kernel_, varying_of(store, varying_))) continue;
      add(is_packet_store(kernel_, store, varying_), store.access,
          kernel_.buffers[store.buffer].type);
    }
    if (widest == 0 || spread) return 1;
    int64_t elements = std::min(kPacketBytes / widest, kMostPacketElements);
    while (elements > 1 && extent_ < elements * ThreadLoop::kWarp) elements /= 2;
    return elements;
  }

  bool can_share_steps() const {
    int64_t bytes = 0;  // of shared memory for the folds: twice, and for arg reductions of indices
    for (const Expr& expr : kernel_.exprs) {
      if (!is_reduction(expr.op)) continue;
      const bool is_arg = is_arg_reduction(expr.op);
      bytes += int64_t{2} * kRowsOfThreads * loop_.columns() * (is_arg ? 16 : 8);
    }
    return steps() >= kStepsWorthSharing && number(kernel_.block) <= ThreadLoop::kColumns &&
           bytes <= kMostFoldBytes;
  }

  // The dimension that most loads are transposed along, where they fit into shared memory.
  void choose_transposed() {
    int64_t most = 0;
    for (size_t dimension = 0; dimension + 1 < kernel_.parallel.size(); ++dimension) {
      if (std::min(extent_, extent_of(dimension)) < kLeastTransposed) continue;
      int64_t bytes = 0;
      for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
        if (!is_transposed_load(kernel_, static_cast<ExprId>(i), dimension, varying_)) continue;
        bytes +=
            kernel_.exprs[i].type == Type::kDouble || kernel_.exprs[i].type == Type::kInt64 ? 8 : 4;
      }
      if (bytes <= most || bytes > kMostTransposedBytes) continue;
      most = bytes;
      loop_.transposed = static_cast<int>(dimension);
    }
    if (loop_.transposed < 0 || most > kMostBytesOfLargeSquare) return;
    int64_t squares = divided_up(extent_, kLargeSquare);
    for (size_t dimension = 0; dimension + 1 < kernel_.parallel.size(); ++dimension) {
      const bool in_square = int(dimension) == loop_.transposed;
      squares *= divided_up(extent_of(dimension), in_square ? kLargeSquare : 1);
    }
    if (squares >= kLeastLargeSquares) loop_.square = kLargeSquare;
  }

  int cost() const {
    int sum = 0;
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
      if (runs_along(kernel_, varying_[i])) sum += cost_of(kernel_.exprs[i]);
    }
    return sum;
  }

  void set_packets(int64_t elements) {
    const int64_t of_extent = divided_up(extent_, ThreadLoop::kWarp * loop_.packet);
    loop_.packets = static_cast<int>(
        std::clamp<int64_t>(elements / loop_.packet, 1, std::max<int64_t>(of_extent, 1)));
  }

  // 4-byte values for each element that are kept from one sweep to a later one, at most.
  static int64_t values_kept(const Kernel& kernel, const Schedule& schedule) {
    int64_t most = 0;
    for (size_t sweep = 1; sweep < schedule.sweeps.size(); ++sweep) {
      int64_t kept = 0;
      for (size_t i = 0; i < kernel.exprs.size(); ++i) {
        const auto id = static_cast<ExprId>(i);
        if (schedule.scratch_places[i] < 0) continue;
        bool before = false, after = false;
        for (size_t other = 0; other < schedule.sweeps.size(); ++other) {
          const Sweep& at = schedule.sweeps[other];
          const auto has = [&](const std::vector<ExprId>& ids) {
            return std::find(ids.begin(), ids.end(), id) != ids.end();
          };
          if (other < sweep) before |= has(at.spilled);
          if (other >= sweep) after |= has(at.reloaded);
        }
        if (before && after) kept += width_of(kernel.exprs[i].type);
      }
      most = std::max(most, kept);
    }
    return most;
  }

  void hold_row(const Schedule& schedule) {
    if (kernel_.reduction.size() != 1 || !kernel_.reduction_total.is(0)) return;
    const int64_t values = values_kept(kernel_, schedule);
    const int64_t packet = loop_.packet;
    for (int64_t threads = ThreadLoop::kWarp; threads <= ThreadLoop::kMostThreads; threads *= 2) {
      const int64_t packets = std::max<int64_t>(divided_up(extent_, threads * packet), 1);
      const int64_t elements = packets * packet;
      const bool may_hold_more = threads == ThreadLoop::kWarp && cost() <= kCheapRowCost;
      const int64_t most = may_hold_more ? kHeldByThreadOfWarp : kHeldByThread;
      if (elements > most ||
          elements * values > (threads == ThreadLoop::kMostThreads ? most : kMostHeldValues))
        continue;
      loop_.holds_row = true;
      loop_.threads = static_cast<int>(threads);
      break;
    }
    if (!loop_.holds_row) return;
    while (loop_.threads < ThreadLoop::kMostThreads && loop_.threads * packet < extent_ &&
           2 * rows() * loop_.threads <= kDeviceThreads) {
      loop_.threads *= 2;
    }
    loop_.packets =
        static_cast<int>(std::max<int64_t>(divided_up(extent_, loop_.threads * packet), 1));
  }

  // In registers and in shared memory, as far as these go.
  void hold_long_row() {
    if (kernel_.reduction.size() != 1 || !kernel_.reduction_total.is(0)) return;
    const Schedule schedule = make_schedule(kernel_, Spilling::kPackets);
    const int64_t values = values_kept(kernel_, schedule);
    if (values == 0) return;
    const int64_t step = kThreadsOfLongRow * loop_.packet;
    const int64_t packets = divided_up(extent_, step);
    constexpr int64_t kStreamed = ThreadLoop::kStreamedPackets;
    const int64_t in_registers = std::clamp<int64_t>(
        (kValuesOfLongRow - values_of_row()) / (values * loop_.packet) - kStreamed, 0, packets - 1);
    const int64_t fitting =
        (shared_bytes_ - fold_bytes()) / (held_bytes(kernel_, schedule) * step) / kStreamed;
    const int64_t in_shared =
        kStreamed * std::min(divided_up(packets - in_registers, kStreamed), fitting);
    const int64_t held = in_registers + in_shared;
    if (held * kLeastHeldOfRow < packets) return;
    loop_.holds_row = true;
    loop_.threads = kThreadsOfLongRow;
    loop_.packets = static_cast<int>(in_registers);
    loop_.shared_packets = static_cast<int>(in_shared);
    loop_.has_rest = held < packets;
  }

  // 4-byte values beyond those of a softmax that are the same for the whole row, and may be needed
  // to its end.
  int64_t values_of_row() const {
    constexpr int64_t kFew = 4;
    int64_t values = 0;
    for (size_t i = 0; i < kernel_.exprs.size(); ++i)
      if (!runs_along(kernel_, varying_[i]) && kernel_.exprs[i].op != Op::kNumber)
        values += width_of(kernel_.exprs[i].type);
    return std::max<int64_t>(values - kFew, 0);
  }

  // Of the folds of a block's warps.
  int64_t fold_bytes() const {
    int64_t bytes = 0;
    for (const Expr& expr : kernel_.exprs)
      if (is_reduction(expr.op)) bytes += int64_t{2} * ThreadLoop::kWarp * 2 * 8;  // with an index
    return bytes;
  }

  // Whether indices and addresses, counted in elements, stay within 32 bits, with room for the
  // steps beyond the end that loops end with.
  bool is_narrow() const {
    constexpr double kMost = 0x7f000000;
    for (int64_t size : sizes_) {
      if (double(std::abs(size)) > kMost) return false;
    }
    double points = 1, reduced = 1;
    const size_t parallel = kernel_.parallel.size();
    for (size_t i = 0; i < parallel + kernel_.reduction.size(); ++i) {
      (i < parallel ? points : reduced) *= double(extent_of(i));
    }
    if (points > kMost || reduced > kMost) return false;
    const auto fits = [&](const Access& access) {
      double last = std::abs(double(number(access.offset)));
      for (size_t i = 0; i < access.strides.size(); ++i) {
        last += double(extent_of(i)) * std::abs(double(number(access.strides[i])));
      }
      return last <= kMost;
    };
    return std::all_of(
               kernel_.exprs.begin(), kernel_.exprs.end(),
               [&](const Expr& expr) { return expr.op != Op::kLoad || fits(expr.access); }) &&
           std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [&](const Store& store) { return fits(store.access); });
  }

  const Kernel& kernel_;
  const std::vector<int64_t>& sizes_;
  const int64_t shared_bytes_;
  const std::vector<Dimensions> varying_;
  int64_t extent_ = 1;  // of the lanes' dimension
  ThreadLoop loop_;
};

}  // namespace

int64_t transposed_work_items(const Kernel& kernel, const std::vector<int64_t>& sizes) {
  int64_t items = 1;
  for (size_t i = 0; i < kernel.parallel.size(); ++i) {
    const Size extent = kernel.parallel[i];
    const int64_t number = extent.slot ? sizes[size_t(extent.value)] : extent.value;
    const bool in_square =
        i == size_t(kernel.thread_loop.transposed) || i + 1 == kernel.parallel.size();
    items *= in_square ? divided_up(number, kernel.thread_loop.square) : number;
  }
  return items;
}

int threads_of_few(int64_t elements) {
  if (elements > ThreadLoop::kWarp / 2) return 0;
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(elements)));
}

int64_t threads_of_long_row(int64_t elements) {
  const auto packets = static_cast<uint64_t>(std::max<int64_t>(elements / kMostPacketElements, 1));
  return std::clamp<int64_t>(static_cast<int64_t>(std::bit_floor(packets)), ThreadLoop::kWarp,
                             ThreadLoop::kMostThreads);
}

ThreadLoop choose_thread_loop(const Kernel& kernel, const std::vector<int64_t>& sizes,
                              int64_t shared_bytes) {
  return ThreadLoopChooser(kernel, sizes, shared_bytes).choose();
}

Spilling spilling_of_held_rows(const Kernel& kernel) {
  return kernel.thread_loop.is_long_row() ? Spilling::kPackets : Spilling::kRegisters;
}

int64_t shared_bytes(const Kernel& kernel) {
  const ThreadLoop& loop = kernel.thread_loop;
  if (loop.shared_packets == 0) return 0;
  const Schedule schedule = make_schedule(kernel, spilling_of_held_rows(kernel));
  return held_bytes(kernel, schedule) * loop.shared_packets * loop.packet * loop.threads;
}

int most_threads(const Kernel& kernel) {
  constexpr int kUsual = 256;
  if (kernel.axis == Axis::kParallel) return kUsual;
  const ThreadLoop& loop = kernel.thread_loop;
  if (loop.threads > 0) return std::max(kUsual, loop.threads);
  const int64_t loaded = int64_t{loop.packet} * loop.packets * values_of_packets(kernel);
  const bool many = loop.packet > 1 && loaded > kLoadedValuesOfLargestBlock;
  return many ? ThreadLoop::kMostThreads / 2 : ThreadLoop::kMostThreads;
}

}  // namespace torch_lazy::codegen
