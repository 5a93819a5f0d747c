// Long reductions to one point as two kernels, so that threads share the work.
#pragma once

#include <cstdint>

#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

// A reduction of at least 65,536 elements to one point, with no value that varies after it.
bool is_long_reduction(const Draft& draft);

struct CutReduction {
  Draft chunks;       // stores one partial result a chunk
  Draft combination;  // reduces the partial results and does what follows
  // Elements of the whole, where a chunk's index is that of the whole (Kernel::reduction_total); 0
  // where chunks are steps of the outermost axis.
  int64_t total = 0;
  int64_t partial_elements = 0;  // of each reduction: chunks
};

CutReduction cut_reduction(Draft draft);

}  // namespace torch_lazy::codegen
