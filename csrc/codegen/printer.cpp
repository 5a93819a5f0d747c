#include "codegen/printer.h"

#include "base/debug.h"
#include "codegen/print_context.h"
#include "codegen/print_nest.h"
#include "codegen/source_writer.h"
#include "codegen/sweeps.h"
#include "codegen/thread_loop.h"

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

void print_arguments_struct(const Kernel& kernel, SourceWriter& out) {
  out.open("struct " + kernel.name + "_arguments");
  if (!kernel.buffers.empty()) {
    out.line("void* pointers[" + std::to_string(kernel.buffers.size()) + "];");
  }
  if (kernel.size_slots > 0) out.line("int64 sizes[" + std::to_string(kernel.size_slots) + "];");
  if (kernel.number_slots > 0) {
    out.line("double numbers[" + std::to_string(kernel.number_slots) + "];");
  }
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
  for (size_t i = 0; i < used.numbers.size(); ++i) {
    const std::string number = std::to_string(i);
    if (used.numbers[i]) {
      out.line("const double d" + number + " = " + from + "numbers[" + number + "];");
    }
  }
}

// A GPU's threads have no scratch: they keep a row where it fits into their registers.
Spilling spilling_of(const Kernel& kernel, bool cuda) {
  if (!cuda) return Spilling::kScratch;
  return kernel.thread_loop.holds_row ? spilling_of_held_rows(kernel) : Spilling::kNone;
}

}  // namespace

int64_t scratch_bytes(uint32_t scratch_values, int64_t elements) {
  return 4 * int64_t{scratch_values} * scratch_run(elements);
}

PrintedKernel print_kernel(const Kernel& kernel, const Target& target) {
  if (verifies_passes()) verify(kernel);
  const bool cuda = target.kind == Target::Kind::kCuda;
  const Schedule schedule = make_schedule(kernel, spilling_of(kernel, cuda));
  std::set<std::string> functions;
  PrintContext context = make_context(kernel, target, schedule, functions);
  if (kernel.axis == Axis::kParallel) {
    context.scratch_lanes = NestPrinter::tile_copies(kernel, target, schedule) * target.lanes;
  }

  SourceWriter out;
  for (const std::string& comment : kernel.comments) out.line("// " + comment);
  if (cuda) {
    print_arguments_struct(kernel, out);
    out.open("extern \"C\" __global__ void __launch_bounds__(" +
             std::to_string(most_threads(kernel)) +
             (kernel.thread_loop.holds_row ? ", 1) " : ") ") + kernel.name +
             "(const __grid_constant__ " + kernel.name +
             "_arguments arguments, int64 begin, int64 end)");
  } else {
    out.open("extern \"C\" void " + kernel.name +
             "(void* const* pointers, const int64* sizes, const double* numbers, int64 begin, "
             "int64 end)");
  }
  print_arguments(context, cuda ? "arguments." : "", out);
  NestPrinter(context, out).print();
  out.close();
  const uint32_t scratch_values =
      context.uses_scratch() ? schedule.scratch_values * uint32_t(context.scratch_lanes) : 0;
  const std::string prelude = prelude_for(target, functions);
  return {prelude + out.take(), kernel.name, std::move(functions), prelude.size(), scratch_values};
}

}  // namespace torch_lazy::codegen
