#include "codegen/print_arguments.h"

#include <vector>

#include "codegen/launch_arguments.h"

namespace torch_lazy::codegen {
namespace {

// The slots that the kernel names anywhere.
struct UsedSlots {
  std::vector<bool> sizes;
  std::vector<bool> numbers;
};

UsedSlots used_slots(const Kernel& kernel) {
  UsedSlots used{std::vector<bool>(kernel.size_slots), std::vector<bool>(kernel.number_slots)};
  const auto add = [&](Size size) {
    if (size.slot) used.sizes[size.value] = true;
  };
  const auto add_access = [&](const Access& access) {
    add(access.offset);
    for (Size stride : access.strides) add(stride);
    for (const auto& indirect : access.indirect) add(indirect.stride);
  };
  for (Size extent : kernel.parallel) add(extent);
  for (Size extent : kernel.reduction) add(extent);
  add(kernel.block);
  add(kernel.reduction_total);
  for (const Expr& expr : kernel.exprs) {
    add_access(expr.access);
    if (expr.op == Op::kNumber) {
      used.numbers[expr.value.value] = true;
    } else {
      add(expr.value);
    }
  }
  for (const Store& store : kernel.stores) add_access(store.access);
  return used;
}

// "const float* __restrict const p_x", initialised by `value`, or its address.
std::string pointer_definition(const Buffer& buffer, const std::string& value) {
  std::string type = buffer.written ? "" : "const ";
  type += storage_type(buffer.type);
  type += "*";
  std::string text = type;
  if (buffer.exclusive) text += " __restrict";
  text += " const p_" + buffer.name + " = (" + type + ")";
  return text + (buffer.immediate ? "&" : "") + value + ";";
}

}  // namespace

void print_argument_structs(const Kernel& kernel, SourceWriter& out) {
  out.open("struct " + kernel.name + "_arguments");
  if (!kernel.buffers.empty()) {
    out.line("void* pointers[" + std::to_string(kernel.buffers.size()) + "];");
  }
  if (kernel.size_slots > 0) out.line("int64 sizes[" + std::to_string(kernel.size_slots) + "];");
  if (kernel.number_slots > 0) {
    out.line("double numbers[" + std::to_string(kernel.number_slots) + "];");
  }
  out.close(";");
  if (kernel.instances == 1) return;
  out.open("struct " + kernel.name + "_batch");
  const std::string count = "[" + std::to_string(kernel.instances) + "];";
  out.line(kernel.name + "_arguments instances" + count);
  out.line("int64 ends" + count);
  out.close(";");
}

void print_arguments(const PrintContext& context, const std::string& from, SourceWriter& out) {
  const Kernel& kernel = context.kernel;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    out.line(pointer_definition(kernel.buffers[i], from + "pointers[" + std::to_string(i) + "]"));
  }
  if (context.uses_scratch()) {
    out.line("float* const scratch = (float*)" + from + "pointers[" +
             std::to_string(kernel.buffers.size()) + "];");
  }
  const UsedSlots used = used_slots(kernel);
  for (size_t i = 0; i < used.sizes.size(); ++i) {
    const std::string number = std::to_string(i);
    if (!used.sizes[i]) continue;
    out.line("const " + context.index_type() + " s" + number + " = " + from + "sizes[" + number +
             "];");
  }
  const std::vector<bool> floats = floats_among_numbers(kernel);
  for (size_t i = 0; i < used.numbers.size(); ++i) {
    if (!used.numbers[i]) continue;
    const std::string number = std::to_string(i), field = from + "numbers[" + number + "]";
    out.line(context.is_cuda() && floats[i]
                 ? "const float d" + number + " = *(const float*)&" + field + ";"
                 : "const double d" + number + " = " + field + ";");
  }
}

}  // namespace torch_lazy::codegen
