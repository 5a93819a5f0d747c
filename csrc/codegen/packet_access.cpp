#include "codegen/packet_access.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

bool is_packet(const Kernel& kernel, const Access& access, ExprId predicate,
               const std::vector<Dimensions>& varying) {
  const size_t lanes = lane_dimension(kernel);
  return predicate == kNoPredicate && lanes < access.strides.size() &&
         access.strides[lanes].is(1) && !has_index_along_lanes(kernel, access, varying);
}

}  // namespace

bool runs_along(const Kernel& kernel, Dimensions varying) {
  const size_t lanes = lane_dimension(kernel);
  return lanes != kNoDimension && (varying & dimension_bit(lanes)) != 0;
}

bool has_index_along_lanes(const Kernel& kernel, const Access& access,
                           const std::vector<Dimensions>& varying) {
  return std::any_of(access.indirect.begin(), access.indirect.end(),
                     [&](const Access::Indirect& indirect) {
                       return runs_along(kernel, varying[indirect.index]);
                     });
}

bool has_indices(const Kernel& kernel) {
  const auto has_index = [](const auto& of) { return !of.access.indirect.empty(); };
  return std::any_of(kernel.exprs.begin(), kernel.exprs.end(), has_index) ||
         std::any_of(kernel.stores.begin(), kernel.stores.end(), has_index);
}

bool is_packet_load(const Kernel& kernel, ExprId id, const std::vector<Dimensions>& varying) {
  const Expr& expr = kernel.exprs[id];
  return expr.op == Op::kLoad && is_packet(kernel, expr.access, expr.predicate, varying);
}

bool is_packet_store(const Kernel& kernel, const Store& store,
                     const std::vector<Dimensions>& varying) {
  return is_packet(kernel, store.access, store.predicate, varying);
}

// Only of memory that the kernel does not write: the threads load for each other.
bool is_transposed_load(const Kernel& kernel, ExprId id, size_t dimension,
                        const std::vector<Dimensions>& varying) {
  const Expr& expr = kernel.exprs[id];
  if (expr.op != Op::kLoad || !runs_along(kernel, varying[id])) return false;
  const Buffer& buffer = kernel.buffers[expr.buffer];
  return buffer.exclusive && !buffer.written && expr.predicate == kNoPredicate &&
         expr.access.indirect.empty() && expr.access.strides[dimension].is(1) &&
         !expr.access.strides[lane_dimension(kernel)].is(0) &&
         !expr.access.strides[lane_dimension(kernel)].is(1);
}

bool is_square_load(const Kernel& kernel, ExprId id, size_t dimension) {
  const Expr& expr = kernel.exprs[id];
  if (expr.op != Op::kLoad || expr.predicate != kNoPredicate || !expr.access.indirect.empty())
    return false;
  const Size apart = expr.access.strides[lane_dimension(kernel)];
  return expr.access.strides[dimension].is(1) && (apart.slot || apart.value > kWidestTile);
}

}  // namespace torch_lazy::codegen
