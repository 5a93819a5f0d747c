#include "backend/cpu/cpu_backend.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>

#include "backend/cpu/choose_products.h"
#include "backend/cpu/compiler_library.h"
#include "backend/cpu/cpu_launcher.h"
#include "backend/cpu/kernel_compiler.h"
#include "backend/cpu/onednn_products.h"
#include "backend/processor_name.h"
#include "backend/registry.h"
#include "base/config.h"
#include "base/debug.h"
#include "base/disk_cache.h"
#include "base/pass_times.h"
#include "codegen/cache_hints.h"
#include "codegen/prelude.h"
#include "codegen/printer.h"
#include "passes/cat_in_kernels.h"
#include "passes/decompose_attention.h"
#include "passes/multiply_in_kernels.h"
#include "passes/pipeline.h"
#include "passes/scan_in_kernels.h"
#include "plan/executor.h"
#include "plan/make_plan.h"

namespace torch_lazy {
namespace {

// Multiplications for the scores from which on attention takes longer than what surrounds its
// products. On Zen 5 twice as many take .75 of flash attention's time.
constexpr int64_t kLeastAttentionWork = int64_t{1} << 15;

codegen::Target target() {
  const int bits = kernel_vector_bits();
  return {codegen::Target::Kind::kCpu, bits >= 512 ? 16 : bits >= 256 ? 8 : 4};
}

int64_t reduction_elements(const codegen::LoweredKernel& lowered) {
  int64_t elements = 1;
  for (const codegen::Size& extent : lowered.kernel.reduction) elements *= lowered.number(extent);
  return elements;
}

// The cache that a core has for itself; what the system does not tell is taken to be 2 MiB.
int64_t core_cache_bytes() {
  static const int64_t bytes = std::max(int64_t{2} << 20, int64_t{sysconf(_SC_LEVEL2_CACHE_SIZE)});
  return bytes;
}

// From where on stores of results are non-temporal. The cache that cores share is no measure: on
// servers it is hardly faster than memory.
int64_t nontemporal_bytes() {
  return 4 * core_cache_bytes();
}

CpuKernel compile(const codegen::LoweredKernel& lowered, const codegen::Target& target,
                  DiskCache* disk, CompileTime time) {
  // Without comments, so that the same computation on another line is the same source.
  codegen::Kernel plain = lowered.kernel;
  plain.comments.clear();
  const codegen::PrintedKernel printed = codegen::print_kernel(plain, target);
  if (config().debug >= kDebugKernels)
    debug_print("kernel\n" + codegen::print_kernel(lowered.kernel, target).source);
  CpuKernel kernel;
  kernel.code = compile_kernel(printed.source, printed.entry, KernelTarget::kHost, disk, time);
  kernel.scratch_bytes =
      codegen::scratch_bytes(printed.scratch_values, reduction_elements(lowered));
  return kernel;
}

// Which cats, scans and matrix products kernels compute, and who computes the other products. Under
// deterministic algorithms all products are eager's.
GraphPass own_passes(const CompileOptions& options, int lanes) {
  return [&options, lanes](std::shared_ptr<torch::jit::Graph> graph) {
    std::vector<int64_t> offsets;
    for (const GraphInput& input : options.inputs) offsets.push_back(input.offset);
    graph = cat_in_kernels(std::move(graph), offsets);
    graph = scan_in_kernels(std::move(graph));
    if (options.deterministic) return graph;
    const bool has_onednn = onednn_multiplies_faster() && at::globalContext().userEnabledMkldnn();
    if (has_onednn) graph = decompose_attention(std::move(graph), offsets, kLeastAttentionWork);
    graph = multiply_in_kernels(std::move(graph), offsets, lanes);
    return has_onednn ? choose_products(std::move(graph)) : graph;
  };
}

class CpuBackend final : public Backend {
 public:
  std::string device_name() const override { return processor_name(); }

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    const codegen::Target machine = target();
    const CoreGraph core = core_graph_of(*graph, options.inputs, own_passes(options, machine.lanes),
                                         options.library_operations);
    Plan plan = make_plan(
        core, options.inputs,
        {machine.lanes, at::get_num_threads(), config().rematerialize_bytes, options.verify});
    if (config().debug >= kDebugPasses) debug_print("plan\n" + to_string(plan));
    const PassTimer timer("kernels");
    const CompileTime time =
        options.deterministic ? CompileTime::kUnlimited : CompileTime::kLimited;
    std::vector<CpuKernel> kernels;
    for (PlanStep& step : plan.steps) {
      auto* kernel = std::get_if<KernelStep>(&step.action);
      if (kernel == nullptr) continue;
      codegen::mark_nontemporal_stores(kernel->lowered, nontemporal_bytes());
      codegen::fetch_rows_ahead(kernel->lowered, core_cache_bytes());
      kernels.push_back(torch_lazy::compile(kernel->lowered, machine, disk(), time));
      kernel->lowered.kernel = {};  // a run needs the sizes and numbers only, and loops are large
      kernel->lowered.buffers = {};
    }
    return std::make_shared<PlanExecutable>(std::move(plan),
                                            std::make_unique<CpuLauncher>(std::move(kernels)));
  }

  void trim() override { trim_compiler_library(); }

 private:
  // Null where nothing is to be kept. Made by the first compile and not with the backend: it may
  // warn, which takes the GIL, and backends are made under the registry's lock.
  DiskCache* disk() {
    std::call_once(made_disk_, [this] {
      if (config().cache_bytes > 0 && !config().cache_directory.empty())
        disk_ = std::make_unique<DiskCache>(
            std::filesystem::path(config().cache_directory) / "kernels", config().cache_bytes);
    });
    return disk_.get();
  }

  std::once_flag made_disk_;
  std::unique_ptr<DiskCache> disk_;
};

}  // namespace

void register_cpu_backend() {
  register_onednn_products();
  register_backend(
      "cpu", []() -> std::unique_ptr<Backend> { return std::make_unique<CpuBackend>(); }, {},
      [] {
        return BackendOutlook{missing_compiler_library(), {}};
      });
}

}  // namespace torch_lazy
