#include "codegen/draft_axes.h"

#include <algorithm>
#include <numeric>

namespace torch_lazy::codegen {
namespace {

int64_t stride(const Access& access, size_t axis) {
  return access.strides[axis].value;
}

void remove_axis(Draft& draft, size_t axis) {
  draft.extents.erase(draft.extents.begin() + long(axis));
  draft.reduced.erase(draft.reduced.begin() + long(axis));
  for_each_access(draft, [&](Access& access, Type) {
    access.strides.erase(access.strides.begin() + long(axis));
  });
  for (Expr& expr : draft.exprs)
    if (expr.op == Op::kIndex && expr.dimension > axis) --expr.dimension;
}

bool indexed(const Draft& draft, size_t axis) {
  for (const Expr& expr : draft.exprs)
    if (expr.op == Op::kIndex && expr.dimension == axis) return true;
  return false;
}

// Whether every access advances from one `outer` step to the next as after all of `inner`.
bool mergeable(const Draft& draft, size_t outer, size_t inner) {
  if (draft.reduced[outer] != draft.reduced[inner]) return false;
  if (indexed(draft, outer) || indexed(draft, inner)) return false;
  bool all = true;
  for_each_access(draft, [&](const Access& access, Type) {
    all &= stride(access, outer) == stride(access, inner) * draft.extents[inner];
  });
  return all;
}

}  // namespace

size_t parallel_count(const Draft& draft) {
  return size_t(std::count(draft.reduced.begin(), draft.reduced.end(), false));
}

AxisSet reduced_axes(const Draft& draft) {
  AxisSet reduced = 0;
  for (size_t axis = 0; axis < draft.reduced.size(); ++axis)
    if (draft.reduced[axis]) reduced |= AxisSet(1) << axis;
  return reduced;
}

AxisSet axes_of(const Access& access, const std::vector<AxisSet>& of_exprs) {
  AxisSet set = 0;
  for (size_t axis = 0; axis < access.strides.size(); ++axis)
    if (stride(access, axis) != 0) set |= AxisSet(1) << axis;
  for (const Access::Indirect& indirect : access.indirect) set |= of_exprs[size_t(indirect.index)];
  return set;
}

std::vector<AxisSet> varying_axes(const Draft& draft) {
  const AxisSet reduced = reduced_axes(draft);
  std::vector<AxisSet> varying(draft.exprs.size());
  for (size_t i = 0; i < draft.exprs.size(); ++i) {
    const Expr& expr = draft.exprs[i];
    AxisSet set = 0;
    for (const ExprId argument : expr.arguments) set |= varying[size_t(argument)];
    if (expr.op == Op::kLoad) {
      set |= axes_of(expr.access, varying);
      if (expr.predicate != kNoPredicate) set |= varying[size_t(expr.predicate)];
    }
    if (expr.op == Op::kIndex) set |= AxisSet(1) << expr.dimension;
    if (is_reduction(expr.op)) set &= ~reduced;
    if (is_scan(expr.op)) set |= reduced;
    varying[i] = set;
  }
  return varying;
}

std::vector<bool> after_reduction(const Draft& draft) {
  std::vector<bool> after(draft.exprs.size());
  for (size_t i = 0; i < draft.exprs.size(); ++i) {
    const Expr& expr = draft.exprs[i];
    bool is_after = is_reduction(expr.op);
    for (const ExprId argument : expr.arguments) is_after = is_after || after[size_t(argument)];
    for (const Access::Indirect& indirect : expr.access.indirect)
      is_after = is_after || after[size_t(indirect.index)];
    after[i] = is_after;
  }
  return after;
}

void permute_axes(Draft& draft, const std::vector<size_t>& order) {
  const auto permuted = [&](const auto& old) {
    auto result = old;
    for (size_t i = 0; i < order.size(); ++i) result[i] = old[order[i]];
    return result;
  };
  draft.extents = permuted(draft.extents);
  draft.reduced = permuted(draft.reduced);
  for_each_access(draft, [&](Access& access, Type) { access.strides = permuted(access.strides); });
  for (Expr& expr : draft.exprs)
    if (expr.op == Op::kIndex)
      expr.dimension =
          uint32_t(std::find(order.begin(), order.end(), expr.dimension) - order.begin());
}

void order_and_merge_axes(Draft& draft) {
  const size_t axes = draft.extents.size();
  // The bytes that an access touches, negative where it does not step by `axis` wider than by
  // `other`.
  const auto vote_of = [&](const Access& access, Type type, size_t axis, size_t other) {
    const int64_t a = std::abs(stride(access, axis)), b = std::abs(stride(access, other));
    if (a == 0 || b == 0 || a == b) return 0.0;
    double touched = double(bytes_of(type));
    for (size_t i = 0; i < axes; ++i)
      if (stride(access, i) != 0) touched *= double(draft.extents[i]);
    return a > b ? touched : -touched;
  };
  const auto wider = [&](size_t axis, size_t other) {
    double vote = 0;
    for_each_access(draft, [&](const Access& access, Type type) {
      vote += vote_of(access, type, axis, other);
    });
    // Loads can be transposed (Kernel::jam, ThreadLoop::transposed), stores cannot.
    if (vote == 0)
      for (const Store& store : draft.stores)
        vote += vote_of(store.access, draft.buffers[store.buffer].type, axis, other);
    return vote;
  };
  std::vector<size_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](size_t a) { return !draft.reduced[a]; });
  // Insertion sort: votes need not be transitive, and there are few axes.
  for (size_t i = 1; i < axes; ++i)
    for (size_t j = i; j > 0; --j) {
      const size_t before = order[j - 1], after = order[j];
      if (draft.reduced[before] != draft.reduced[after] || wider(before, after) >= 0) break;
      std::swap(order[j - 1], order[j]);
    }
  permute_axes(draft, order);
  for (size_t outer = draft.extents.size(); outer-- > 1;) {
    const size_t inner = outer;
    if (!mergeable(draft, inner - 1, inner)) continue;
    draft.extents[inner] *= draft.extents[inner - 1];
    remove_axis(draft, inner - 1);
  }
}

}  // namespace torch_lazy::codegen
