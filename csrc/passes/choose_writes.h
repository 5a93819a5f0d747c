// Partial writes that kernels make, as choices by index.
#pragma once

#include <c10/util/ArrayRef.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace torch_lazy {

// A few partial writes to what a kernel makes, of numbers or of what pointwise operators make of
// elements at the same places, become operators on all elements: what is written is computed for
// every one, and is the result or what was there before by the element's index. So `x[:, :4] *= 2`
// is in one kernel with what is before and behind it. Other writes stay, where too much would be
// computed for too few elements, where parts of the result are read for themselves, and where a
// library call needs what was there in memory. Expects what `simplify` leaves. `input_offsets` as
// there.
std::shared_ptr<torch::jit::Graph> choose_writes(std::shared_ptr<torch::jit::Graph> graph,
                                                 c10::IntArrayRef input_offsets = {});

}  // namespace torch_lazy
