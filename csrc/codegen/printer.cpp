#include "codegen/printer.h"

#include <algorithm>
#include <stdexcept>

#include "base/debug.h"
#include "codegen/print_arguments.h"
#include "codegen/print_context.h"
#include "codegen/print_nest.h"
#include "codegen/source_writer.h"
#include "codegen/sweeps.h"
#include "codegen/thread_loop.h"

namespace torch_lazy::codegen {
namespace {

// A GPU's threads have no scratch: they keep a row where it fits into their registers.
Spilling spilling_of(const Kernel& kernel, bool cuda) {
  if (!cuda) return Spilling::kScratch;
  return kernel.thread_loop.holds_row ? spilling_of_held_rows(kernel) : Spilling::kNone;
}

// ptxas, where it is not told that one block on a multiprocessor will do, chooses so few registers
// that a thread spills some: of a row that it holds, or of floats of 8 bits that it decodes (NVRTC
// 13.0 for sm_100: 12 bytes to keep to 40 registers).
bool needs_many_registers(const Kernel& kernel) {
  const auto decodes = [](const Expr& expr) {
    return expr.op == Op::kLoad &&
           (expr.type == Type::kFloat8E4M3FN || expr.type == Type::kFloat8E5M2);
  };
  return kernel.thread_loop.holds_row ||
         std::any_of(kernel.exprs.begin(), kernel.exprs.end(), decodes);
}

}  // namespace

int64_t scratch_bytes(uint32_t scratch_values, int64_t elements) {
  return 4 * int64_t{scratch_values} * scratch_run(elements);
}

PrintedKernel print_kernel(const Kernel& kernel, const Target& target) {
  if (verifies_passes()) verify(kernel);
  const bool cuda = target.kind == Target::Kind::kCuda;
  if (cuda && has_scans(kernel.exprs))
    throw std::invalid_argument("kernel '" + kernel.name +
                                "' has a scan, which no GPU's threads share");
  const Schedule schedule = make_schedule(kernel, spilling_of(kernel, cuda));
  std::set<std::string> functions;
  PrintContext context = make_context(kernel, target, schedule, functions);
  if (kernel.axis == Axis::kParallel) {
    context.scratch_lanes = NestPrinter::tile_copies(kernel, target, schedule) * target.lanes;
  }

  SourceWriter out;
  for (const std::string& comment : kernel.comments) out.line("// " + comment);
  if (cuda) {
    print_argument_structs(kernel, out);
    out.open("extern \"C\" __global__ void __launch_bounds__(" +
             std::to_string(most_threads(kernel)) +
             (needs_many_registers(kernel) ? ", 1) " : ") ") + kernel.name +
             "(const __grid_constant__ " + kernel.name +
             (kernel.instances > 1 ? "_batch batch" : "_arguments arguments") +
             ", int64 begin, int64 end)");
  } else {
    out.open("extern \"C\" void " + kernel.name +
             "(void* const* pointers, const int64* sizes, const double* numbers, int64 begin, "
             "int64 end)");
  }
  if (kernel.instances == 1) print_arguments(context, cuda ? "arguments." : "", out);
  NestPrinter(context, out).print();
  out.close();
  const uint32_t scratch_values =
      context.uses_scratch() ? schedule.scratch_values * uint32_t(context.scratch_lanes) : 0;
  const std::string prelude = prelude_for(target, functions);
  return {prelude + out.take(), kernel.name, std::move(functions), prelude.size(), scratch_values};
}

}  // namespace torch_lazy::codegen
