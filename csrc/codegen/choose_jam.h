// Which steps of a work item are jammed.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

// Of a kernel for a CPU with vectors of `lanes` floats, called with these sizes, whose loops are
// chosen: the parallel dimension along which its sweep loads most again, in as many steps, up to
// `most_steps`, as registers hold the accumulators of; without reductions that along which most
// loads are contiguous that are not along the lanes, in squares. None where that saves little, or
// where steps would have to share more than their sums: several sweeps, stores in a sweep. None of
// gathers and scatters.
Jam choose_jam(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes,
               int64_t most_steps = INT64_MAX);

}  // namespace torch_lazy::codegen
