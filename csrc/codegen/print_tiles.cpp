#include "codegen/print_tiles.h"

#include <algorithm>

#include "codegen/print_nest.h"

namespace torch_lazy::codegen {
namespace {

// How many neighbouring elements the steps of a work item touch from each lane; 1 where they are
// no neighbours, or their number is not known here.
int64_t neighbours(const Kernel& kernel, const Access& access) {
  if (!is_unrolled(kernel) || !access.indirect.empty()) return 1;
  int64_t count = 1;
  for (size_t i = access.strides.size(); i-- > kernel.parallel.size();) {
    if (access.strides[i].is(0)) continue;
    if (!access.strides[i].is(count)) return 1;
    count *= kernel.reduction[i - kernel.parallel.size()].value;
  }
  return count;
}

std::string name(const PrintContext& context, const std::string& family, int64_t number,
                 uint32_t buffer) {
  return family + std::to_string(number) + "_" + context.kernel.buffers[buffer].name;
}

// An access as the first step makes it.
Access first_step(const Kernel& kernel, Access access) {
  for (size_t i = kernel.parallel.size(); i < access.strides.size(); ++i)
    access.strides[i] = Size::constant(0);
  return access;
}

}  // namespace

std::optional<Tile> tile_of(const PrintContext& context, const Access& access, ExprId predicate) {
  const size_t lanes = context.lane_dimension;
  if (context.is_cuda() || context.target.lanes == 1 || predicate != kNoPredicate) return {};
  if (lanes >= access.strides.size() || access.strides[lanes].slot) return {};
  const int64_t stride = access.strides[lanes].value;
  if (stride < 2 || stride > kWidestTile) return {};
  for (const auto& indirect : access.indirect) {
    if (context.is_vector(indirect.index)) return {};
  }
  const int64_t count = neighbours(context.kernel, access);
  return Tile{stride, count <= stride ? count : 1};
}

std::optional<Tile> whole_tile(const PrintContext& context, const Expr& load) {
  if (load.op != Op::kLoad) return {};
  const std::optional<Tile> tile = tile_of(context, load.access, load.predicate);
  return tile && tile->count > 1 ? tile : std::nullopt;
}

// Between the elements of a store there may be others', so there must be nothing between.
std::optional<Tile> whole_tile(const PrintContext& context, const Store& store) {
  const std::optional<Tile> tile = tile_of(context, store.access, store.predicate);
  return tile && tile->count == tile->stride ? tile : std::nullopt;
}

std::string tile_index(const PrintContext& context, const Access& access) {
  std::string sum;
  for (size_t i = context.kernel.parallel.size(); i < access.strides.size(); ++i) {
    const std::string term = product(name_of_index(context, i), access.strides[i]);
    if (!term.empty()) sum += (sum.empty() ? "" : " + ") + term;
  }
  return sum;
}

std::string name_of_loaded_tile(const PrintContext& context, ExprId load) {
  return name(context, "u", load, context.kernel.exprs[load].buffer);
}

std::string name_of_stored_tile(const PrintContext& context, uint32_t store) {
  return name(context, "w", store, context.kernel.stores[store].buffer);
}

void NestPrinter::print_loaded_tiles(const Body& body) {
  const Kernel& kernel = context_.kernel;
  for (const Sweep& sweep : context_.schedule.sweeps) {
    for (ExprId id : sweep.exprs) {
      const bool again =
          std::any_of(context_.schedule.sweeps.data(), &sweep, [&](const Sweep& before) {
            return std::find(before.exprs.begin(), before.exprs.end(), id) != before.exprs.end();
          });
      const Expr& load = kernel.exprs[id];
      const std::optional<Tile> tile = whole_tile(context_, load);
      if (again || !tile) continue;
      const Access access = first_step(kernel, load.access);
      const std::string name = name_of_loaded_tile(context_, id);
      out_.line(std::string(vector_type(load.type)) + " " + name + "[" +
                std::to_string(tile->count) + "];");
      out_.line(context_.call(
                    std::string("lazy_load_tile_") + name_of(load.type),
                    {accesses_.address(load.buffer, access, body), constant_argument(tile->stride),
                     constant_argument(tile->count), accesses_.constant_count(body), name}) +
                ";");
    }
  }
}

void NestPrinter::print_tiles_to_store(const Sweep& sweep) {
  for (uint32_t number : sweep.stores) {
    const Store& store = context_.kernel.stores[number];
    const std::optional<Tile> tile = whole_tile(context_, store);
    if (!tile) continue;
    out_.line(std::string(vector_type(context_.kernel.buffers[store.buffer].type)) + " " +
              name_of_stored_tile(context_, number) + "[" + std::to_string(tile->count) + "];");
  }
}

void NestPrinter::print_stored_tiles(const Sweep& sweep, const Body& body) {
  const Kernel& kernel = context_.kernel;
  for (uint32_t number : sweep.stores) {
    const Store& store = kernel.stores[number];
    const std::optional<Tile> tile = whole_tile(context_, store);
    if (!tile) continue;
    const Access access = first_step(kernel, store.access);
    out_.line(context_.call(
                  std::string("lazy_store_tile_") + name_of(kernel.buffers[store.buffer].type),
                  {accesses_.address(store.buffer, access, body), constant_argument(tile->stride),
                   name_of_stored_tile(context_, number), accesses_.constant_count(body)}) +
              ";");
  }
}

void NestPrinter::print_spilled_steps() {
  const Kernel& kernel = context_.kernel;
  if (!is_unrolled(kernel)) return;
  int64_t steps = 1;
  for (Size extent : kernel.reduction) steps *= extent.value;
  for (const Sweep& sweep : context_.schedule.sweeps) {
    for (ExprId id : sweep.spilled)
      out_.line(std::string(vector_type(kernel.exprs[id].type)) + " m" + std::to_string(id) + "[" +
                std::to_string(steps) + "];");
  }
}

bool NestPrinter::any_tile() const {
  const Kernel& kernel = context_.kernel;
  return std::any_of(kernel.exprs.begin(), kernel.exprs.end(),
                     [&](const Expr& expr) {
                       return expr.op == Op::kLoad &&
                              tile_of(context_, expr.access, expr.predicate).has_value();
                     }) ||
         std::any_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const Store& store) { return whole_tile(context_, store).has_value(); });
}

}  // namespace torch_lazy::codegen
