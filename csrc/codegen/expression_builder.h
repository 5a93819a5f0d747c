// Builds the expressions of a kernel from the nodes of a fusion group.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/affine.h"
#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Loops before their order is chosen. An axis has a concrete extent; accesses have concrete strides
// by axis (Size constants), which choose_loops.h turns into slots.
struct Draft {
  std::vector<int64_t> extents;
  std::vector<bool> reduced;
  std::vector<Expr> exprs;
  std::vector<Store> stores;
  std::vector<Buffer> buffers;
  std::vector<BufferBinding> bindings;
  std::vector<double> numbers;
};

// Fills draft.exprs and draft.stores. Returns the node that cannot be expressed, if any.
std::optional<LowerFailure> build_expressions(const LowerContext& context, const FusionGroup& group,
                                              Draft& draft);

}  // namespace torch_lazy::codegen
