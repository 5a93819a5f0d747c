// Long reductions to few points as two kernels, so that threads share the work.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

// Elements of a chunk, where the draft reduces so much to so few points that it is cut: to one
// point on the CPU, on CUDA to fewer than keep a device busy. No value may vary after the reduction
// along what it reduces. `lanes`: along which axes they run.
std::optional<int64_t> chunk_of_long_reduction(const Draft& draft, Axis lanes, bool for_cuda);

struct CutReduction {
  Draft chunks;       // stores one partial result a chunk
  Draft combination;  // reduces the partial results and does what follows
  // Elements of the whole, where a chunk's index is that of the whole (Kernel::reduction_total); 0
  // where chunks are steps of the outermost axis.
  int64_t total = 0;
  int64_t partial_elements = 0;   // of each reduction: chunks, times points
  Axis lanes = Axis::kReduction;  // of the chunks
};

CutReduction cut_reduction(Draft draft, Axis lanes, int64_t chunk);

// Chunks are steps of the outermost axis that is reduced, where there are several: for a GPU, whose
// multiprocessors each want one, it becomes the longest but the innermost, divided so that a step
// is worth a chunk.
void divide_for_chunks(Draft& draft, Axis lanes);

}  // namespace torch_lazy::codegen
