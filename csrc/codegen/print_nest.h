// The loops of a kernel as source. Internal to the printer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/print_access.h"
#include "codegen/print_context.h"
#include "codegen/print_reduction.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// Fewer than `copies` where a constant extent is shorter than these many vectors.
int copies_within(Size extent, int copies, int lanes);

std::string least(const std::string& a, const std::string& b);

class NestPrinter {
 public:
  NestPrinter(const PrintContext& context, SourceWriter& out)
      : context_(context), accesses_(context), out_(out) {}

  // All that happens in the function once its arguments have names.
  void print();

  // How many copies of the body the lanes' loop of a kernel has where the lanes run along a
  // parallel dimension: neighbouring vectors, so that reductions read memory in longer runs, or
  // those of Kernel::pairs.
  static int tile_copies(const Kernel& kernel, const Target& target, const Schedule& schedule);

 private:
  // Whether what is left of the columns behind whole tiles is gone down in pairs of vectors, the
  // second of which may have a mask: a single one would wait for its own sums.
  static bool tile_ends_in_pairs(const Kernel& kernel, const Target& target);

  // Indices in [first, last), as source.
  struct Range {
    std::string first;
    std::string last;
  };
  // Prints all copies of a body.
  using PrintBody = std::function<void(const Body&)>;
  using Reductions = std::vector<ReductionPrinter>;

  // What does not differ between work items, of one instance.
  void print_values_of_all_items();
  void print_instance();
  void print_block_counts();
  void print_scratch();
  void print_kernel_scalars();
  void open_work_items();
  // Of a work item's number, the last the fastest: its indices along the parallel dimensions.
  struct Digit {
    std::string name;
    std::string extent;
  };
  std::vector<Digit> work_item_digits() const;
  void print_digits(const std::vector<Digit>& digits, const std::string& type,
                    const std::string& item);
  void print_first_work_item();
  void print_next_work_item();
  void print_work_item_scalars();
  void print_reduction_range();
  void print_tile(const Body& body);
  // Of the jammed steps of a work item.
  void print_jam_range();
  void print_scalars_of_steps();
  void print_squares(const Body& body);
  void print_jammed_tile(const Body& body);
  void print_row_values(size_t level, const Body& body);
  void print_leaving();
  void print_row_stores(const Body& body);

  void print_sweep(size_t number, const Body& tile);
  void print_innermost_loop(const Sweep& sweep, const Reductions& reductions, const Range& range,
                            const Body& tile);
  // Of a GPU: over all reduction dimensions at once (ThreadLoop::flat).
  void print_flat_loop(const Sweep& sweep, const Reductions& reductions, const Range& range,
                       const Body& tile);
  // Those that change in the loop of this depth, but for what differs between jammed steps.
  void print_sweep_exprs(const Sweep& sweep, size_t depth, const Body& body);
  // A scalar, or all copies of a vector; nothing of a product that sums add as they multiply.
  void print_value(ExprId id, const Body& body);
  void print_innermost(const Sweep& sweep, const Reductions& reductions, const Body& body);
  int sweep_copies(const Sweep& sweep) const;
  bool is_staged(const Sweep& sweep) const;

  // A loop over [range) along the lanes: vectors of all lanes, then what is left. `apart`: whole
  // vectors have a body of their own even if masks are free, as non-temporal stores and tiles want.
  void print_lanes(const Range& range, int copies, bool whole_vectors, bool apart,
                   const PrintBody& print_body);

  void print_masked(const Range& range, int copies, const PrintBody& print_body);

  // Of a GPU: a loop over [range) in which each thread loads packets, evaluates the body for each
  // of their elements, and stores packets. `exprs` and `stores` are the body's.
  void print_packets(const Range& range, const std::vector<ExprId>& exprs,
                     const std::vector<uint32_t>& stores, const PrintBody& print_body);
  // Where the thread's packets lie in [range), which each of the packets in the body has to allow.
  void print_packet_start(const Range& range, const std::vector<ExprId>& exprs,
                          const std::vector<uint32_t>& stores);
  // Where a thread has what an earlier sweep has loaded.
  enum class Held : uint8_t { kInRegisters, kInShared, kNowhere };
  // Packets of a thread that are loaded, evaluated and stored together.
  struct PacketRun {
    std::string start;  // the index of the first one's first element
    int packets = 1;
    Held held = Held::kInRegisters;
    const Sweep* sweep = nullptr;  // of a long row
  };
  void open_packet_runs(const Range& range, const std::string& start, int packets);
  void print_packet_run(const Range& range, const PacketRun& run, const std::vector<ExprId>& loads,
                        const std::vector<uint32_t>& stores, const PrintBody& print_body);
  void open_packet_steps(const Range& range, const PacketRun& run);
  // `what`: "load", "store" or "store_rounded".
  void print_packet_call(const std::string& what, Type type, const std::string& address,
                         const std::string& packet, bool whole, const Range& range);
  void print_packet_loads(const Range& range, const PacketRun& run,
                          const std::vector<ExprId>& loads);
  void print_packet_stores(const Range& range, const std::vector<uint32_t>& stores);
  std::vector<ExprId> packet_loads(const std::vector<ExprId>& exprs) const;
  std::vector<uint32_t> packet_stores(const std::vector<uint32_t>& stores) const;
  // Of a GPU: the columns of a work item whose steps the threads of a block share.
  void print_columns();
  // Of a GPU: a square along the lanes and another dimension, of which some loads go through shared
  // memory.
  void print_transposed();
  void print_square_loads();
  void open_rows_of_square(const std::string& rows);
  void open_columns_of_square();
  void close_columns_of_square();
  // What the threads that share a work item have reduced each, combined; all get the results.
  void print_folds(const Reductions& reductions);
  void print_fold(const std::vector<Fold>& folds);
  void print_fold_of_warps(const std::vector<Fold>& folds);
  void print_fold_of_rows(const std::vector<Fold>& folds);
  bool has_folds() const;
  // Once for all sweeps over a row that is held.
  void print_held_row();
  // A sweep over a row that registers have no place for.
  void print_long_row(const Sweep& sweep, const Reductions& reductions);
  void print_shared_packets(const PacketRun& run, bool before);
  std::string held_element(ExprId id) const;

  // Whether any of `stores`, or of the kernel's, is non-temporal.
  bool nontemporal(const std::vector<uint32_t>& stores) const;
  bool any_nontemporal() const;

  // Tiles are loaded before the steps of which each reads a part, and stored after those that make
  // them.
  void print_loaded_tiles(const Body& body);
  void print_tiles_to_store(const Sweep& sweep);
  void print_stored_tiles(const Sweep& sweep, const Body& body);
  bool any_tile() const;
  // What takes the place of scratch where steps are unrolled.
  void print_spilled_steps();

  // The loads whose memory is asked for in a sweep before the one that reads it.
  struct Prefetch {
    ExprId load;
    bool of_next_work_item;
  };
  std::vector<Prefetch> prefetches_in(size_t sweep) const;
  void print_prefetches(const Body& body);
  void print_prefetch_range();
  // Of the rows that a work item goes along, by itself or in a sweep down its columns.
  bool fetches_ahead() const;
  void print_fetches_ahead(const Body& body);
  void print_fetches_ahead(const Sweep& sweep, const Body& body);
  void print_fetch_ahead(ExprId load, const Body& body);
  void print_fetch_to_write_ahead(uint32_t store, const Body& body);
  void print_fetch_ahead(const std::string& function, uint32_t buffer, const Access& access,
                         const Body& body);

  bool needs_flat_index(const Sweep& sweep) const;
  std::string outer_flat_index() const;
  std::string flat_index(const Body& body) const;
  std::string scratch_address(ExprId id, const Body& body) const;
  std::string spilled_step(ExprId id) const;
  size_t innermost() const { return context_.kernel.reduction.size() - 1; }
  size_t depth_of(ExprId id) const;
  bool along_reduction() const { return context_.kernel.axis == Axis::kReduction; }

  const PrintContext& context_;
  AccessPrinter accesses_;
  SourceWriter& out_;
  Range steps_;                       // of the outermost loop over the reduction dimensions
  Range reduction_;                   // of the innermost one
  size_t sweep_ = 0;                  // that is being printed
  std::vector<Prefetch> prefetches_;  // of this sweep
  Reductions jammed_;                 // that the sweep has left to be finished in each step
  Held held_ = Held::kInRegisters;    // of the packets that are being printed
};

}  // namespace torch_lazy::codegen
