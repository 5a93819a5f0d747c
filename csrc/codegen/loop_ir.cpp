#include "codegen/loop_ir.h"

#include "codegen/loop_analysis.h"

namespace torch_lazy::codegen {
namespace {

std::string text_of(Size size) {
  return size.slot ? "S" + std::to_string(size.value) : std::to_string(size.value);
}

std::string text_of(ExprId id) {
  std::string text = "%";
  return text += std::to_string(id);
}

std::string dimension_name(const Kernel& kernel, size_t dimension) {
  const size_t parallel = kernel.parallel.size();
  return dimension < parallel ? "p" + std::to_string(dimension)
                              : "r" + std::to_string(dimension - parallel);
}

std::string text_of(const Kernel& kernel, const Access& access) {
  std::string text;
  const auto add_term = [&](const std::string& index, Size stride) {
    if (stride.is(0)) return;
    if (!text.empty()) text += " + ";
    text += index;
    if (!stride.is(1)) text += " * " + text_of(stride);
  };
  if (!access.offset.is(0)) text = text_of(access.offset);
  for (size_t i = 0; i < access.strides.size(); ++i) {
    add_term(dimension_name(kernel, i), access.strides[i]);
  }
  for (const auto& indirect : access.indirect) add_term(text_of(indirect.index), indirect.stride);
  return "[" + (text.empty() ? "0" : text) + "]";
}

std::string text_of_value(const Kernel& kernel, const Expr& expr) {
  std::string text = name_of(expr.op);
  switch (expr.op) {
    case Op::kLoad:
      text += " " + kernel.buffers[expr.buffer].name + text_of(kernel, expr.access);
      break;
    case Op::kNumber:
      text += " D" + std::to_string(expr.value.value);
      break;
    case Op::kInteger:
      text += " " + text_of(expr.value);
      break;
    case Op::kIndex:
      text += " " + dimension_name(kernel, expr.dimension);
      break;
    default:
      break;
  }
  for (size_t i = 0; i < expr.arguments.size(); ++i) {
    text += (i == 0 ? " " : ", ") + text_of(expr.arguments[i]);
  }
  if (expr.predicate != kNoPredicate) text += " if " + text_of(expr.predicate);
  return text;
}

std::string text_of(const ThreadLoop& loop) {
  std::string text;
  if (loop.packet > 1) {
    text += " packets=" + std::to_string(loop.packets) + "x" + std::to_string(loop.packet);
  }
  if (loop.holds_row) text += " holds_row";
  if (loop.threads > 0) text += " threads=" + std::to_string(loop.threads);
  if (loop.flat) text += " flat";
  if (loop.shared_packets > 0) text += " shared_packets=" + std::to_string(loop.shared_packets);
  if (loop.has_rest) text += " has_rest";
  if (loop.rows > 1) text += " rows=" + std::to_string(loop.rows);
  if (loop.transposed >= 0) text += " transposed=p" + std::to_string(loop.transposed);
  if (loop.square != ThreadLoop::kColumns) text += " square=" + std::to_string(loop.square);
  if (loop.narrow) text += " narrow";
  return text;
}

}  // namespace

std::string to_string(const Kernel& kernel) {
  std::string text = "kernel " + kernel.name;
  if (kernel.axis == Axis::kReduction) {
    text += " lanes=reduction";
  } else {
    text += " lanes=parallel block=" + text_of(kernel.block);
  }
  if (!kernel.reduction_total.is(0)) text += " reduction_total=" + text_of(kernel.reduction_total);
  if (kernel.short_sums) text += " short_sums";
  if (kernel.fetch_ahead_bytes > 0)
    text += " fetch_ahead=" + std::to_string(kernel.fetch_ahead_bytes);
  if (kernel.pairs) text += " pairs";
  text += text_of(kernel.thread_loop);
  if (kernel.jam.steps > 1) {
    text += " jam=" + std::to_string(kernel.jam.steps) + "*" +
            dimension_name(kernel, size_t(kernel.jam.dimension));
    if (kernel.jam.vectors < Jam::kMostVectors)
      text += " vectors=" + std::to_string(kernel.jam.vectors);
  }
  if (kernel.instances > 1) text += " instances=" + std::to_string(kernel.instances);
  text += "\n";
  for (const std::string& comment : kernel.comments) text += "  # " + comment + "\n";
  for (const Buffer& buffer : kernel.buffers) {
    text += "  buffer " + buffer.name + ": " + name_of(buffer.type);
    if (buffer.written) text += " written";
    if (!buffer.exclusive) text += " shared";
    if (buffer.immediate) text += " immediate";
    text += "\n";
  }
  for (size_t i = 0; i < kernel.parallel.size(); ++i) {
    text += "  for " + dimension_name(kernel, i) + " < " + text_of(kernel.parallel[i]) + "\n";
  }
  for (size_t i = 0; i < kernel.reduction.size(); ++i) {
    text += "  reduce " + dimension_name(kernel, kernel.parallel.size() + i) + " < " +
            text_of(kernel.reduction[i]) + "\n";
  }
  for (size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& expr = kernel.exprs[i];
    text += "  " + text_of(static_cast<ExprId>(i)) + ": " + name_of(expr.type) + " = " +
            text_of_value(kernel, expr) + "\n";
  }
  for (const Store& store : kernel.stores) {
    text += "  store " + kernel.buffers[store.buffer].name + text_of(kernel, store.access) + " = " +
            text_of(store.expr);
    if (store.predicate != kNoPredicate) text += " if " + text_of(store.predicate);
    if (store.nontemporal) text += " nontemporal";
    text += "\n";
  }
  return text;
}

}  // namespace torch_lazy::codegen
