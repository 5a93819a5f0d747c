// The axes of a draft: which expressions vary along them, which can be merged or moved.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

using AxisSet = uint64_t;  // bit i: axis i; a draft has at most 64

size_t parallel_count(const Draft& draft);
AxisSet reduced_axes(const Draft& draft);

// By expression: the axes along which its value changes.
std::vector<AxisSet> varying_axes(const Draft& draft);

// The axes along which an access moves; `of_exprs`: along which its indices change.
AxisSet axes_of(const Access& access, const std::vector<AxisSet>& of_exprs);

// By expression: whether it is, or follows from, a reduction.
std::vector<bool> after_reduction(const Draft& draft);

// Calls visit(Access&, Type) for every load and store.
template <typename AnyDraft, typename Visit>
void for_each_access(AnyDraft& draft, const Visit& visit) {
  for (auto& expr : draft.exprs)
    if (expr.op == Op::kLoad) visit(expr.access, expr.type);
  for (auto& store : draft.stores) visit(store.access, draft.buffers[store.buffer].type);
}

// Rearranges the axes: new axis i is old axis order[i].
void permute_axes(Draft& draft, const std::vector<size_t>& order);

// Puts parallel axes before reduction axes, each by falling stride in the accesses that touch most
// memory, and makes one axis of neighbours that every access runs through as one.
void order_and_merge_axes(Draft& draft);

}  // namespace torch_lazy::codegen
