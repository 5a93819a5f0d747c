#include "backend/cuda/cuda_backend.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "backend/cuda/cuda_launcher.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/kernel_library.h"
#include "backend/cuda/leave_to_library.h"
#include "backend/cuda/nvrtc.h"
#include "backend/cuda/random_kernels.h"
#include "backend/registry.h"
#include "base/config.h"
#include "base/debug.h"
#include "base/disk_cache.h"
#include "base/pass_times.h"
#include "codegen/batch.h"
#include "codegen/launch_arguments.h"
#include "codegen/launch_shape.h"
#include "codegen/printer.h"
#include "passes/pipeline.h"
#include "plan/executor.h"
#include "plan/make_plan.h"

namespace torch_lazy {
namespace {

using codegen::LoweredKernel;
using codegen::PrintedKernel;
using cuda::CudaKernel;

constexpr codegen::Target kTarget{.kind = codegen::Target::Kind::kCuda};

// What a device takes as parameters of a kernel, from CUDA 12.1 on and before. begin and end are 16
// bytes of it.
constexpr size_t kMostArgumentBytes = 32764 - 16, kMostArgumentBytesBefore = 4096 - 16;
constexpr int kVersionOfManyArguments = 12010;  // of the driver and NVRTC both

// Printed with a name of its own: kernels of one image have the same name where they are the same.
PrintedKernel print(const LoweredKernel& lowered) {
  codegen::Kernel plain = lowered.kernel;
  plain.comments.clear();
  const std::string source = codegen::print_kernel(plain, kTarget).source;
  plain.name += fmt::format("_{:016x}", XXH3_64bits(source.data(), source.size()));
  if (config().debug >= kDebugKernels)
    debug_print("kernel\n" + codegen::print_kernel(lowered.kernel, kTarget).source);
  PrintedKernel printed = codegen::print_kernel(plain, kTarget);
  printed.comments = lowered.kernel.comments;
  return printed;
}

size_t most_argument_bytes() {
  const cuda::NvrtcLibrary nvrtc = cuda::nvrtc_library();
  const int version = std::min(cuda::driver().version, 1000 * nvrtc.major + 10 * nvrtc.minor);
  return version >= kVersionOfManyArguments ? kMostArgumentBytes : kMostArgumentBytesBefore;
}

void check_arguments(const LoweredKernel& lowered) {
  const size_t bytes = codegen::argument_bytes(lowered), most = most_argument_bytes();
  TORCH_CHECK(bytes <= most, "kernel ", lowered.kernel.name, " has ", bytes,
              " bytes of arguments; a device takes ", most);
}

class CudaBackend final : public Backend {
 public:
  // Raises where a library is missing, or the device is too old.
  CudaBackend() {
    cuda::compiled_architecture(cuda::device_properties(0).architecture);
    cuda::register_random_kernels();
  }

  std::optional<c10::DeviceType> device_type() const override { return c10::DeviceType::CUDA; }

  std::string device_name() const override { return cuda::device_properties(0).name; }

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    const cuda::DeviceProperties& device = properties(options.device);
    const GraphPass leave = [&](std::shared_ptr<torch::jit::Graph> functional) {
      return cuda::leave_long_arg_reductions(std::move(functional), device.multiprocessors);
    };
    const CoreGraph core = core_graph_of(*graph, options.inputs, leave, options.library_operations);
    PlanOptions plan_options;
    plan_options.lanes = 32;
    plan_options.threads = device.multiprocessors;
    plan_options.rematerialize_bytes = config().rematerialize_bytes;
    plan_options.verify = options.verify;
    plan_options.device = options.device;
    plan_options.target = codegen::Target::Kind::kCuda;
    plan_options.argument_bytes = most_argument_bytes();
    plan_options.shared_bytes = device.shared_bytes_of_block;
    Plan plan = make_plan(core, options.inputs, plan_options);
    if (config().debug >= kDebugPasses) debug_print("plan\n" + to_string(plan));
    const PassTimer timer("kernels");
    std::vector<CudaKernel> kernels = compile_kernels(plan, device);
    return std::make_shared<PlanExecutable>(
        std::move(plan), std::make_unique<cuda::CudaLauncher>(options.device, std::move(kernels)));
  }

 private:
  std::vector<CudaKernel> compile_kernels(Plan& plan, const cuda::DeviceProperties& device) {
    const codegen::GpuLimits limits{device.multiprocessors, device.threads_per_multiprocessor,
                                    device.shared_bytes_of_block};
    std::vector<CudaKernel> kernels;
    std::vector<PrintedKernel> printed;
    for (PlanStep& step : plan.steps) {
      auto* const kernel = std::get_if<KernelStep>(&step.action);
      if (!kernel) continue;
      LoweredKernel& lowered = kernel->lowered;
      check_arguments(lowered);
      printed.push_back(print(lowered));
      kernels.push_back({nullptr, codegen::launch_shape(lowered, limits),
                         codegen::argument_forms(lowered.kernel), kernel->name});
      lowered.kernel = {};  // a run needs the sizes and numbers only, and loops are large
      lowered.buffers = {};
    }
    if (kernels.empty()) return kernels;
    cuda::LoadedKernels loaded =
        libraries().load(printed, cuda::compiled_architecture(device.architecture));
    for (size_t i = 0; i < kernels.size(); ++i) kernels[i].code = std::move(loaded[i]);
    return kernels;
  }

  const cuda::DeviceProperties& properties(c10::Device device) {
    auto& known = properties_[size_t(device.index())];
    if (!known) known = cuda::device_properties(device.index());
    return *known;
  }

  // Made by the first compile and not with the backend: the cache may warn, which takes the GIL,
  // and backends are made under the registry's lock.
  cuda::KernelLibraries& libraries() {
    if (libraries_) return *libraries_;
    disk_ = cuda::open_kernel_cache();
    return libraries_.emplace(disk_.get());
  }

  // All of the compile thread.
  std::array<std::optional<cuda::DeviceProperties>, 64> properties_;
  std::unique_ptr<DiskCache> disk_;
  std::optional<cuda::KernelLibraries> libraries_;
};

BackendOutlook look_for_libraries() {
  try {
    const cuda::Driver& driver = cuda::driver();
    const cuda::NvrtcLibrary nvrtc = cuda::nvrtc_library();
    return {{},
            fmt::format("driver of CUDA {}.{} ({}), NVRTC {}.{} ({})", driver.version / 1000,
                        driver.version % 1000 / 10, driver.library.file, nvrtc.major, nvrtc.minor,
                        nvrtc.file)};
  } catch (const std::exception& error) {
    return {error.what(), {}};
  }
}

}  // namespace

void register_cuda_backend() {
  register_backend(
      "cuda", []() -> std::unique_ptr<Backend> { return std::make_unique<CudaBackend>(); }, {},
      &look_for_libraries);
}

}  // namespace torch_lazy
