// Long reductions to few points as two kernels, so that threads share the work.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

// How the steps of a reduction are chunks: each index of the outermost axis that is reduced has its
// own where that is `by_outermost`, and the outermost axis that is left is cut into chunks of so
// many steps.
struct Chunks {
  bool by_outermost = false;
  int64_t steps = 0;  // 0: it is not cut

  bool operator==(const Chunks&) const = default;
};

// A GPU has enough to do with more work items: then no reduction is cut.
constexpr int64_t kMostItemsToCut = 256;

// The chunks of a draft that reduces so much to so few points that it is cut: to one point on the
// CPU, on CUDA to fewer than keep a device busy. No value may vary after the reduction along what
// it reduces, nor may one be stored along it that does not vary. `lanes`: along which axes they
// run.
std::optional<Chunks> chunks_of_long_reduction(const Draft& draft, Axis lanes, bool for_cuda);

struct CutReduction {
  Draft chunks;       // stores one partial result a chunk
  Draft combination;  // reduces the partial results and does what follows
  // Steps of the axis that is cut, as a whole (Kernel::reduction_total); 0 where none is.
  int64_t total = 0;
  int64_t partial_elements = 0;   // of each reduction: chunks, times points
  Axis lanes = Axis::kReduction;  // of the chunks
};

CutReduction cut_reduction(Draft draft, Axis lanes, const Chunks& chunks);

// Of the axes that are reduced, but the innermost, the longest becomes the one that is cut: each of
// a GPU's multiprocessors wants a chunk.
void put_longest_outermost(Draft& draft);

}  // namespace torch_lazy::codegen
