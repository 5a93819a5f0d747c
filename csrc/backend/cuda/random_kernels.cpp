#include "backend/cuda/random_kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/bit_cast.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/driver.h"
#include "backend/cuda/kernel_library.h"
#include "backend/cuda/nvrtc.h"
#include "base/config.h"
#include "base/disk_cache.h"
#include "base/fork.h"
#include "base/immortal_library.h"
#include "base/metrics.h"
#include "base/warn.h"
#include "codegen/prelude.h"
#include "ops/philox_operators.h"

namespace torch_lazy::cuda {
namespace {

// Elements of a draw are 0 or the bits of 1, in words of their size.
constexpr char kDraws[] = R"(
extern "C" __global__ void {entry}({word}* out, int64 elements, int64 key, float p, {word} one) {{
  const int64 apart = (int64)gridDim.x * blockDim.x;
  for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += apart)
    out[i] = lazy_philox_uniform(i, key) < p ? one : ({word})0;
}}
)";
constexpr char kUniforms[] = R"(
extern "C" __global__ void {entry}(float* out, const int64* position, int64 elements, int64 key) {{
  const int64 apart = (int64)gridDim.x * blockDim.x;
  for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += apart)
    out[i] = lazy_philox_uniform(position[i], key);
}}
)";
constexpr std::array<const char*, 4> kWords = {"unsigned char", "unsigned short", "unsigned int",
                                               "unsigned long long"};  // of 1, 2, 4 and 8 bytes
constexpr size_t kOfUniforms = kWords.size();

constexpr int64_t kThreads = 256;
constexpr int64_t kElementsOfThread = 4;

// Draws by the logarithm of an element's bytes, then uniforms.
constexpr size_t kKernels = kWords.size() + 1;

// Of one of the kernels: programs seldom draw elements of two sizes, and each takes its time.
struct RandomProgram {
  LoadedKernels kernels;
  int64_t most_blocks = 0;
};

codegen::PrintedKernel printed(const char* source, const std::string& entry, const char* word) {
  const std::set<std::string> functions{"lazy_philox_uniform:int64"};
  const std::string prelude =
      codegen::prelude_for({.kind = codegen::Target::Kind::kCuda}, functions);
  const std::string body =
      fmt::format(fmt::runtime(source), fmt::arg("entry", entry), fmt::arg("word", word));
  return {.source = prelude + body, .entry = entry, .functions = functions, .body = prelude.size()};
}

std::shared_ptr<const RandomProgram> compile(c10::DeviceIndex device, size_t kernel) {
  const std::vector<codegen::PrintedKernel> sources{
      kernel == kOfUniforms
          ? printed(kUniforms, "lazy_uniforms", "")
          : printed(kDraws, fmt::format("lazy_draw_{}", 1 << kernel), kWords.at(kernel))};
  const std::unique_ptr<DiskCache> disk = open_kernel_cache();
  const DeviceProperties properties = device_properties(device);
  KernelLibraries libraries(disk.get());
  auto program = std::make_shared<RandomProgram>();
  program->kernels = libraries.load(sources, compiled_architecture(properties.architecture));
  program->most_blocks =
      int64_t{properties.multiprocessors} * properties.threads_per_multiprocessor / kThreads;
  return program;
}

// Null where it cannot be had, which is told once; then the CPU draws. That may be for lack of
// memory at this moment, so it is tried again, a few times. Compiled without the lock: two threads
// may both do it.
std::shared_ptr<const RandomProgram> program_for(c10::DeviceIndex device, size_t kernel) {
  constexpr int kMostFailures = 8;
  struct Known {
    std::shared_ptr<const RandomProgram> program;
    int failures = 0;
  };
  struct Programs {
    ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what follows
    std::array<std::map<c10::DeviceIndex, Known>, kKernels> by_device;
  };
  static auto& programs = *new Programs;
  {
    const std::lock_guard lock(programs.mutex);
    const Known& known = programs.by_device.at(kernel)[device];
    if (known.program || known.failures >= kMostFailures) return known.program;
  }
  std::shared_ptr<const RandomProgram> made;
  try {
    made = compile(device, kernel);
  } catch (const std::exception& error) {
    if (increment(metrics().fallbacks["random kernels"]) == 1 && config().warn_fallbacks)
      warn_in_background("the CPU draws random numbers for CUDA, since " + first_line(error));
  }
  const std::lock_guard lock(programs.mutex);
  Known& known = programs.by_device.at(kernel)[device];
  if (!made) ++known.failures;
  if (!known.program) known.program = made;
  return known.program;
}

// On the current stream of the device. False where there is no such kernel.
bool launch(size_t kernel, const at::Tensor& out, int64_t elements, void** parameters) {
  const c10::Device device = out.device();
  if (elements == 0) return true;
  const std::shared_ptr<const RandomProgram> program = program_for(device.index(), kernel);
  if (!program) return false;
  const c10::DeviceGuard current(device);
  ensure_context(device.index());
  const c10::impl::DeviceGuardImplInterface& guard = *c10::impl::getDeviceGuardImpl(device.type());
  const int64_t wanted =
      (elements + kThreads * kElementsOfThread - 1) / (kThreads * kElementsOfThread);
  check(driver().launch(program->kernels.front()->kernel,
                        unsigned(std::min(wanted, program->most_blocks)), 1, 1, kThreads, 1, 1, 0,
                        guard.getStreamNativeHandle(guard.getStream(device)), parameters, nullptr),
        "random numbers cannot be drawn");
  return true;
}

uint64_t bits_of_one(c10::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return c10::Half(1).x;
    case at::kBFloat16:
      return c10::BFloat16(1).x;
    case at::kFloat:
      return c10::bit_cast<uint32_t>(1.0F);
    case at::kDouble:
      return c10::bit_cast<uint64_t>(1.0);
    default:
      TORCH_CHECK_TYPE(c10::isIntegralType(dtype, /*includeBool=*/true), "there are no draws of ",
                       dtype);
      return 1;
  }
}

// The CPU's kernel of an operator.
template <typename Schema>
auto kernel_of_cpu(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Schema>();
}

at::Tensor& bernoulli_(at::Tensor& self, const at::Tensor& key, double p) {
  const bool dense = self.is_contiguous();
  at::Tensor filled = dense ? self : at::empty_like(self, at::MemoryFormat::Contiguous);
  void* out = filled.mutable_data_ptr();
  int64_t elements = filled.numel(), stream = int64_t(stream_of(key));
  auto probability = float(p);
  uint64_t one = bits_of_one(filled.scalar_type());  // little-endian: its first bytes are the word
  std::array<void*, 5> parameters{&out, &elements, &stream, &probability, &one};
  const auto word = size_t(std::countr_zero(unsigned(filled.element_size())));
  if (!launch(word, filled, elements, parameters.data())) {
    static const auto draw = kernel_of_cpu<at::Tensor&(at::Tensor&, const at::Tensor&, double)>(
        "torch_lazy::philox_bernoulli_");
    at::Tensor drawn = at::empty(filled.sizes(), filled.options().device(c10::kCPU));
    filled.copy_(draw.call(drawn, key, p));
  }
  if (!dense) self.copy_(filled);
  return self;
}

at::Tensor bernoulli(const at::Tensor& self, const at::Tensor& key, double p) {
  at::Tensor result = at::empty_like(self);
  bernoulli_(result, key, p);
  return result;
}

at::Tensor uniform(const at::Tensor& position, const at::Tensor& key) {
  TORCH_CHECK_TYPE(position.scalar_type() == at::kLong, "positions in a stream are int64, not ",
                   position.scalar_type());
  const at::Tensor dense = position.contiguous();
  at::Tensor result = at::empty_like(dense, dense.options().dtype(at::kFloat));
  void *out = result.mutable_data_ptr(), *from = const_cast<void*>(dense.const_data_ptr());
  int64_t elements = result.numel(), stream = int64_t(stream_of(key));
  std::array<void*, 4> parameters{&out, &from, &elements, &stream};
  if (!launch(kOfUniforms, result, elements, parameters.data())) {
    static const auto draw = kernel_of_cpu<at::Tensor(const at::Tensor&, const at::Tensor&)>(
        "torch_lazy::philox_uniform");
    result.copy_(draw.call(dense.cpu(), key));
  }
  return result;
}

}  // namespace

void register_random_kernels() {
  static const bool registered = [] {
    torch::Library& cuda =
        immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CUDA);
    cuda.impl("philox_bernoulli_", bernoulli_);
    cuda.impl("philox_bernoulli", bernoulli);
    cuda.impl("philox_uniform", uniform);
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace torch_lazy::cuda
