#include "backend/cpu/cpu_backend.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>

#include <unistd.h>

#include "backend/cpu/kernel_compiler.h"
#include "backend/cpu/plan_executable.h"
#include "backend/registry.h"
#include "codegen/prelude.h"
#include "codegen/printer.h"
#include "graph/pipeline.h"
#include "runtime/config.h"
#include "runtime/debug.h"
#include "runtime/plan.h"
#include "runtime/thread_state.h"

namespace torch_lazy {
namespace {

const c10::Device kDevice{c10::kCPU};

codegen::Target target() {
  const int bits = kernel_vector_bits();
  return {codegen::Target::Kind::kCpu, bits >= 512 ? 16 : bits >= 256 ? 8 : 4};
}

int64_t reduced_elements(const codegen::LoweredKernel& lowered) {
  int64_t elements = 1;
  for (const codegen::Size& extent : lowered.kernel.reduced)
    elements *= extent.slot ? lowered.sizes[size_t(extent.value)] : extent.value;
  return elements;
}

PlanKernel compile(const codegen::LoweredKernel& lowered, const codegen::Target& target) {
  // Without comments, so that the same computation on another line is the same source.
  codegen::Kernel plain = lowered.kernel;
  plain.comments.clear();
  const codegen::PrintedKernel printed = codegen::print_kernel(plain, target);
  if (config().debug >= kDebugKernels)
    debug_print("kernel\n" + codegen::print_kernel(lowered.kernel, target).source);
  PlanKernel kernel;
  kernel.code = compile_kernel(printed.source, printed.entry);
  kernel.scratch_bytes = codegen::scratch_bytes(printed.scratch_values, reduced_elements(lowered));
  return kernel;
}

// CPU work is done when the call that asked for it returns.
class FinishedEvent final : public Event {
 public:
  bool finished() const override { return true; }
  void wait() const override {}
};

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  int device_count() const override { return 1; }
  DeviceProperties properties(c10::DeviceIndex index) const override {
    TORCH_CHECK(index == 0, "backend 'cpu' has one device, there is no device ", int(index));
    const int64_t memory = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGE_SIZE));
    return {.name = "CPU", .device = kDevice, .total_memory = memory};
  }
  bool has_eager_kernels() const override { return true; }

  c10::Allocator* allocator(c10::DeviceIndex) override { return c10::GetCPUAllocator(); }
  void copy(const at::Tensor& source, at::Tensor& destination, bool non_blocking,
            c10::Stream) override {
    const StepThreadState state;
    destination.copy_(source, non_blocking);
  }
  c10::Stream current_stream(c10::DeviceIndex) override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  std::unique_ptr<Event> record_event(c10::Stream) override {
    return std::make_unique<FinishedEvent>();
  }
  void synchronize(c10::DeviceIndex) override {}

  bool supports(c10::ArrayRef<const torch::jit::Node*>) const override { return true; }
  std::unique_ptr<CompileHandle> compile(std::shared_ptr<torch::jit::Graph> graph,
                                         const CompileOptions& options) override {
    const codegen::Target machine = target();
    const CoreGraph core = core_graph_of(*graph, options.inputs);
    Plan plan = make_plan(core, options.inputs, {machine.lanes, at::get_num_threads()});
    if (config().debug >= kDebugPasses) debug_print("plan\n" + to_string(plan));
    std::vector<PlanKernel> kernels;
    for (const PlanStep& step : plan.steps)
      if (const auto* kernel = std::get_if<KernelStep>(&step.action))
        kernels.push_back(torch_lazy::compile(kernel->lowered, machine));
    return compiled(
        std::make_shared<PlanExecutable>(core.graph, std::move(plan), std::move(kernels)));
  }
};

}  // namespace

void register_cpu_backend() {
  register_backend("cpu",
                   []() -> std::unique_ptr<Backend> { return std::make_unique<CpuBackend>(); });
}

}  // namespace torch_lazy
