#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/operator_info.h"
#include "plan/plan.h"

namespace torch_lazy {
namespace {

std::string layout_text(const Extents& sizes, const Extents& strides, int64_t offset) {
  return fmt::format("[{}] strides [{}]{}", fmt::join(sizes, ", "), fmt::join(strides, ", "),
                     offset ? fmt::format(" + {}", offset) : "");
}

struct Printer {
  std::string operator()(const AllocateStep& step) const {
    return fmt::format("%{} = empty {} {}", step.slot, c10::toString(step.dtype),
                       layout_text(step.sizes, step.strides, 0));
  }
  std::string operator()(const ConstantStep& step) const {
    return fmt::format("%{} = constant", step.slot);
  }
  std::string operator()(const ViewStep& step) const {
    return fmt::format("%{} = view %{} {}", step.slot, step.base,
                       layout_text(step.layout.sizes, step.layout.strides, step.layout.offset));
  }
  std::string operator()(const CopyStep& step) const {
    return fmt::format("copy %{} to %{}", step.source, step.target);
  }
  std::string operator()(const CheckStep& step) const {
    return fmt::format("check %{} < {} for {}", step.indices, step.limit, step.raise.op->name);
  }
  std::string operator()(const LibraryStep& step) const {
    std::vector<uint32_t> outputs;
    for (const LibraryStep::Output& output : step.outputs) outputs.push_back(output.slot);
    return fmt::format("%{} = call {}", fmt::join(outputs, ", %"), step.step.op->name);
  }
  std::string operator()(const KernelStep& step) const {
    std::string text = "kernel " + step.lowered.kernel.name + "(";
    for (size_t i = 0; i < step.pointers.size(); ++i) {
      const MemoryPlace& place = step.pointers[i];
      text += i ? ", " : "";
      if (step.lowered.buffers[i].written) text += "out ";
      text += place.arena ? fmt::format("arena+{}", place.bytes) : fmt::format("%{}", place.slot);
    }
    return text + fmt::format(") {} work items", step.lowered.work_items);
  }
};

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text;
  for (const PlanStep& step : plan.steps) {
    text += std::visit(Printer{}, step.action);
    if (!step.released.empty())
      text += fmt::format("  # frees %{}", fmt::join(step.released, ", %"));
    text += "\n";
  }
  return text + fmt::format("{} kernels, {} library calls, {} copies, arena of {} bytes\n",
                            plan.kernels, plan.library_calls, plan.copies, plan.arena_bytes);
}

}  // namespace torch_lazy
