#include "codegen/print_access.h"

#include "codegen/print_jam.h"
#include "codegen/print_tiles.h"

namespace torch_lazy::codegen {
namespace {

void add_term(std::string& sum, const std::string& term) {
  if (term.empty()) return;
  if (!sum.empty()) sum += " + ";
  sum += term;
}

}  // namespace

std::string AccessPrinter::work_item_offset(const Access& access) const {
  std::string sum;
  if (!access.offset.is(0)) sum = name_of_size(access.offset);
  for (size_t i = 0; i < access.strides.size() && i < context_.kernel.parallel.size(); ++i) {
    if (i == context_.lane_dimension) continue;
    add_term(sum, product(name_of_index(context_, i), access.strides[i]));
  }
  for (const auto& indirect : access.indirect) {
    if (!context_.is_work_item_scalar(indirect.index)) continue;
    add_term(sum, product(name_of_scalar(context_, indirect.index), indirect.stride));
  }
  return sum;
}

void AccessPrinter::define_pointer(uint32_t buffer, const Access& access, SourceWriter& out) {
  const std::string offset = work_item_offset(access);
  if (offset.empty()) return;
  const Buffer& at = context_.kernel.buffers[buffer];
  const std::string address = "p_" + at.name + " + " + offset;
  if (pointers_.contains(address)) return;
  const std::string name = "q" + std::to_string(defined_++) + "_" + at.name;
  const std::string type = (at.written ? "" : "const ") + std::string(storage_type(at.type)) + "*";
  if (!context_.varies_by_step(access)) {
    pointers_.emplace(address, name);
    out.line(type + " const " + name + " = " + address + ";");
    return;
  }
  pointers_.emplace(address, name + "[step]");
  out.line(type + " " + name + "[" + std::to_string(context_.kernel.jam.steps) + "];");
  open_jammed_steps(context_, out);
  out.line(name + "[step] = " + address + ";");
  out.close();
}

std::string AccessPrinter::address(uint32_t buffer, const Access& access, const Body& body) const {
  return address_at(buffer, access, lane_index(context_, body));
}

std::string AccessPrinter::address_at(uint32_t buffer, const Access& access,
                                      const std::string& index) const {
  std::string sum = "p_" + context_.kernel.buffers[buffer].name;
  const std::string offset = work_item_offset(access);
  if (!offset.empty()) {
    sum += " + " + offset;
    const auto pointer = pointers_.find(sum);
    if (pointer != pointers_.end()) sum = pointer->second;
  }
  for (size_t i = context_.kernel.parallel.size(); i < access.strides.size(); ++i) {
    if (i == context_.lane_dimension) continue;
    add_term(sum, product(name_of_index(context_, i), access.strides[i]));
  }
  for (const auto& indirect : access.indirect) {
    if (context_.is_vector(indirect.index) || context_.is_work_item_scalar(indirect.index))
      continue;
    add_term(sum, product(name_of_scalar(context_, indirect.index), indirect.stride));
  }
  add_term(sum, product(index, lane_stride(access)));
  return sum;
}

std::string AccessPrinter::load_square(ExprId load, const Body& body) const {
  const Expr& expr = context_.kernel.exprs[load];
  Access access = expr.access;
  access.strides[size_t(context_.kernel.jam.dimension)] = Size::constant(0);
  const std::string type = name_of(expr.type);
  return context_.call(
      "lazy_load_square_" + type,
      {address(expr.buffer, access, body) + " + jam_first", name_of_size(lane_stride(access)),
       count(body), "jam_count", name_of_loaded_packet(context_, load)});
}

std::string AccessPrinter::transposed_address(ExprId load) const {
  const Expr& expr = context_.kernel.exprs[load];
  Access access = expr.access;
  access.strides[size_t(context_.kernel.thread_loop.transposed)] = Size::constant(0);
  std::string sum = "p_" + context_.kernel.buffers[expr.buffer].name;
  add_term(sum, work_item_offset(access));
  add_term(sum, "square_first + lane");
  add_term(sum, product("first + row", lane_stride(access)));
  return sum;
}

Size AccessPrinter::lane_stride(const Access& access) const {
  const size_t lanes = context_.lane_dimension;
  return lanes < access.strides.size() ? access.strides[lanes] : Size::constant(0);
}

bool AccessPrinter::has_vector_index(const Access& access) const {
  for (const auto& indirect : access.indirect) {
    if (context_.is_vector(indirect.index)) return true;
  }
  return false;
}

bool AccessPrinter::is_contiguous(const Access& access) const {
  return (context_.target.lanes == 1 || lane_stride(access).is(1)) && !has_vector_index(access);
}

// Of each lane's element, from the first lane's address without the vector indices.
std::string AccessPrinter::lane_indices(const Access& access, const Body& body) const {
  std::string sum;
  const auto splat = [&](const std::string& number) {
    return context_.call("lazy_splat_int64", {number});
  };
  const auto add = [&](const std::string& index, Size stride) {
    if (stride.is(0)) return;
    std::string term = index;
    if (!stride.is(1)) {
      term = context_.call("lazy_mul", "v_int64", {index, splat(name_of_size(stride))});
    }
    sum = sum.empty() ? term : context_.call("lazy_add", "v_int64", {sum, term});
  };
  if (context_.target.lanes > 1 && !lane_stride(access).is(0)) {
    add(context_.call("lazy_iota", {}), lane_stride(access));
  }
  for (const auto& indirect : access.indirect) {
    if (!context_.is_vector(indirect.index)) continue;
    add(read_vector(context_, indirect.index, body), indirect.stride);
  }
  return sum.empty() ? splat("0") : sum;
}

std::string AccessPrinter::mask(ExprId predicate, const Body& body) const {
  if (predicate == kNoPredicate && !body.is_masked())
    return context_.call("lazy_splat_bool", {"true"});
  if (!body.is_masked()) return read_vector(context_, predicate, body);
  std::string inside = context_.call("lazy_lanes_below", {"n"});
  if (predicate == kNoPredicate) return inside;
  return context_.call("lazy_and", "v_bool", {read_vector(context_, predicate, body), inside});
}

std::string AccessPrinter::load(ExprId id, const Body& body) const {
  const Expr& expr = context_.kernel.exprs[id];
  const Access& access = expr.access;
  const std::string type = name_of(expr.type);
  if (whole_tile(context_, expr))
    return name_of_loaded_tile(context_, id) + "[" + tile_index(context_, access) + "]";
  if (context_.is_square(id)) return name_of_loaded_packet(context_, id) + "[step]";
  if (context_.is_transposed(id)) {
    return "n ? " + name_of_square(context_, id) + "[lane][row] : 0";
  }
  if (context_.is_packet(id)) return name_of_loaded_packet(context_, id) + "[step][j]";
  const std::string from = address(expr.buffer, access, body);
  const bool predicated = expr.predicate != kNoPredicate;
  if (!context_.is_vector(id)) {
    const std::string value = context_.call("lazy_get_" + type, {from});
    return predicated ? name_of_scalar(context_, expr.predicate) + " ? " + value + " : 0" : value;
  }
  const std::string load = "lazy_load_" + type;
  const std::string gather = "lazy_gather_" + type;
  if (is_contiguous(access)) {
    if (predicated) return context_.call(load, "v_bool", {from, mask(expr.predicate, body)});
    return body.is_masked() ? context_.call(load, "int", {from, "n"}) : context_.call(load, {from});
  }
  if (predicated || has_vector_index(access)) {
    return context_.call(gather, "v_int64",
                         {from, lane_indices(access, body), mask(expr.predicate, body)});
  }
  if (lane_stride(access).is(-1) && !context_.is_cuda())
    return context_.call("lazy_load_reversed_" + type, {from, count(body)});
  if (tile_of(context_, access, expr.predicate))
    return context_.call(
        "lazy_load_strided_" + type,
        {from, constant_argument(lane_stride(access).value), constant_count(body)});
  return context_.call(gather, {from, name_of_size(lane_stride(access)), count(body)});
}

std::string AccessPrinter::store(const Store& store, const Body& body) const {
  const Access& access = store.access;
  const std::string type = name_of(context_.kernel.buffers[store.buffer].type);
  const std::string to = address(store.buffer, access, body);
  const bool predicated = store.predicate != kNoPredicate;
  if (!is_vector_store(context_, store)) {
    std::string call =
        context_.call("lazy_put_" + type, {to, name_of_scalar(context_, store.expr)}) + ";";
    if (predicated) call = "if (" + name_of_scalar(context_, store.predicate) + ") " + call;
    return only_once() + call;
  }
  const std::string value = read_vector(context_, store.expr, body);
  if (context_.is_packet(store)) {
    return name_of_stored_packet(context_, store) + "[j] = " + value + ";";
  }
  const std::string function = (is_contiguous(access) ? "lazy_store_" : "lazy_scatter_") + type;
  std::string call;
  if (is_contiguous(access)) {
    if (predicated) {
      call = context_.call(function, "v_bool", {to, value, mask(store.predicate, body)});
    } else if (body.is_masked()) {
      call = context_.call(function, "int", {to, value, "n"});
    } else {
      call = context_.call(is_nontemporal(store) ? "lazy_store_nontemporal_" + type : function,
                           {to, value});
    }
  } else if (predicated || has_vector_index(access)) {
    call = context_.call(function, "v_int64",
                         {to, lane_indices(access, body), value, mask(store.predicate, body)});
  } else {
    call = context_.call(function, {to, name_of_size(lane_stride(access)), value, count(body)});
  }
  return call + ";";
}

// What all lanes would store alike is stored by one thread, lest they race.
std::string AccessPrinter::only_once() const {
  if (!context_.is_cuda()) return "";
  // Work items share such an element where they are blocks of the lanes' dimension.
  const bool blocks = context_.kernel.axis == Axis::kParallel && !context_.kernel.parallel.empty();
  return blocks ? "if (i == 0) " : "if (lane == 0) ";
}

bool AccessPrinter::is_nontemporal(const Store& store) const {
  return store.nontemporal && !context_.is_cuda() && store.predicate == kNoPredicate &&
         is_vector_store(context_, store) && is_contiguous(store.access);
}

bool AccessPrinter::is_row_of_memory(const Access& access, ExprId predicate) const {
  return predicate == kNoPredicate && access.indirect.empty() && lane_stride(access).is(1);
}

bool AccessPrinter::is_row_of_memory(ExprId load) const {
  const Expr& expr = context_.kernel.exprs[load];
  return is_row_of_memory(expr.access, expr.predicate);
}

bool AccessPrinter::is_row_of_memory(const Store& store) const {
  return is_row_of_memory(store.access, store.predicate);
}

std::string AccessPrinter::row_pointer(ExprId load) const {
  const Expr& expr = context_.kernel.exprs[load];
  std::string pointer = "p_" + context_.kernel.buffers[expr.buffer].name;
  const std::string offset = work_item_offset(expr.access);
  if (offset.empty()) return pointer;
  pointer += " + " + offset;
  const auto found = pointers_.find(pointer);
  return found == pointers_.end() ? pointer : found->second;
}

std::string AccessPrinter::count(const Body& body) const {
  return body.is_masked() ? "n" : std::to_string(context_.target.lanes);
}

std::string AccessPrinter::constant_count(const Body& body) const {
  return body.is_masked() ? "n" : constant_argument(context_.target.lanes);
}

}  // namespace torch_lazy::codegen
