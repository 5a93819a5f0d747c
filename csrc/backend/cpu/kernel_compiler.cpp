#include "backend/cpu/kernel_compiler.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "backend/cpu/compiler_library.h"
#include "backend/cpu/kernel_cache.h"
#include "backend/cpu/perf_map.h"
#include "base/disk_cache.h"
#include "base/fork.h"
#include "base/pass_times.h"

namespace torch_lazy {
namespace {

constexpr size_t kCacheBytes = 64 << 20;

// Global: kernels are shared by all graphs, and by a forked child with what its parent had. Never
// destroyed.
KernelCache& kernel_cache() {
  static KernelCache* const instance = [] {
    auto* const cache = new KernelCache(kCacheBytes);
    register_at_fork(
        LockOrder::kKernels, [cache] { cache->lock_for_fork(); },
        [cache](bool in_child) { cache->unlock_after_fork(in_child); });
    return cache;
  }();
  return *instance;
}

// Around every call of the loader, which has locks of its own that a child must not inherit.
std::mutex& loader_mutex() {
  static auto* const mutex = new ForkSafeMutex(LockOrder::kLeaf);
  return *mutex;
}

struct {
  std::atomic<int64_t> compiled{0}, compile_ns{0}, from_disk{0}, cache_hits{0}, failed{0};
} counters;

struct {
  std::atomic<int64_t> source_bytes{KernelCompileLimits().source_bytes};
  std::atomic<int64_t> nanoseconds{KernelCompileLimits().nanoseconds};
} limits;

// PyTorch's library first: Python loads it without making its symbols global.
void* resolve(void*, const char* name) {
  static void* const torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (void* const found = torch ? dlsym(torch, name) : nullptr) return found;
  return dlsym(RTLD_DEFAULT, name);
}

// The lock of the loader is held.
TorchLazyLoader* loader() {
  static TorchLazyLoader* made = nullptr;
  if (made != nullptr) return made;
  const TorchLazyCompilerApi& library = compiler_library();
  TorchLazyBytes error{};
  made = library.create_loader(resolve, nullptr, &error);
  if (made == nullptr)
    throw std::runtime_error("kernels cannot be loaded: " + take_text(library, error));
  return made;
}

TorchLazyTarget api_target(KernelTarget target) {
  switch (target) {
    case KernelTarget::kAvx2:
      return TORCH_LAZY_TARGET_AVX2;
    case KernelTarget::kBaseline:
      return TORCH_LAZY_TARGET_BASELINE;
    case KernelTarget::kHost:
      break;
  }
  return TORCH_LAZY_TARGET_HOST;
}

// The calling thread's compiler for the target, made on first use.
TorchLazyCompiler* compiler_for(KernelTarget target) {
  struct Destroy {
    void operator()(TorchLazyCompiler* compiler) const {
      compiler_library().destroy_compiler(compiler);
    }
  };
  thread_local std::array<std::unique_ptr<TorchLazyCompiler, Destroy>, 3> compilers;
  auto& compiler = compilers.at(static_cast<size_t>(target));
  if (compiler == nullptr) {
    const TorchLazyCompilerApi& library = compiler_library();
    TorchLazyBytes error{};
    compiler.reset(library.create_compiler(api_target(target), &error));
    if (compiler == nullptr) {
      throw std::runtime_error("no kernel can be compiled: " + take_text(library, error));
    }
  }
  return compiler.get();
}

std::string compile_to(TorchLazyOutput output, const std::string& source, const std::string& name,
                       KernelTarget target, CompileTime time) {
  const PausableWork work;
  const TorchLazyCompilerApi& library = compiler_library();
  const TorchLazyCompileRequest request{source.data(),
                                        source.size(),
                                        static_cast<size_t>(limits.source_bytes.load()),
                                        time == CompileTime::kLimited
                                            ? limits.nanoseconds.load()
                                            : std::numeric_limits<int64_t>::max(),
                                        output,
                                        safe_point_for_fork_of_other_thread};
  TorchLazyCompileResult result = library.compile(compiler_for(target), &request);
  add_pass_time("clang", result.front_end_ns);
  add_pass_time("optimize", result.optimizer_ns);
  add_pass_time("generate", result.code_generator_ns);
  std::string bytes = take_text(library, result.bytes);
  if (result.succeeded == 0) {
    throw std::runtime_error(fmt::format("the kernel {} does not compile: {}", name, bytes));
  }
  return bytes;
}

// Null where it is not there, or is of no use.
std::shared_ptr<const CompiledKernel> load_from_disk(DiskCache& disk, const std::string& key,
                                                     const std::string& name) {
  const std::optional<std::string> object = disk.get(key);
  if (!object) return nullptr;
  const PassTimer timer("load");
  try {
    auto kernel = load_kernel(*object, name);
    ++counters.from_disk;
    return kernel;
  } catch (const std::runtime_error&) {
    disk.remove(key);
    return nullptr;
  }
}

std::shared_ptr<const CompiledKernel> compile(const std::string& source, const std::string& name,
                                              KernelTarget target, DiskCache* disk,
                                              CompileTime time) {
  std::string key;
  if (disk) {
    key = disk_key({target, name, source}, kernel_target_description(target));
    if (auto kernel = load_from_disk(*disk, key, name)) return kernel;
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string object = compile_to(TORCH_LAZY_OUTPUT_OBJECT, source, name, target, time);
  auto kernel = load_kernel(object, name);
  counters.compile_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  ++counters.compiled;
  if (disk) disk->put(key, object);
  return kernel;
}

}  // namespace

std::shared_ptr<const CompiledKernel> compile_kernel(const std::string& source,
                                                     const std::string& name, KernelTarget target,
                                                     DiskCache* disk, CompileTime time) {
  bool hit = false;
  try {
    auto kernel = kernel_cache().get(
        {target, name, source}, [&] { return compile(source, name, target, disk, time); }, hit);
    if (hit) ++counters.cache_hits;
    return kernel;
  } catch (...) {
    ++counters.failed;
    throw;
  }
}

std::shared_ptr<const CompiledKernel> load_kernel(const std::string& object,
                                                  const std::string& name) {
  const TorchLazyCompilerApi& library = compiler_library();
  void* address = nullptr;
  TorchLazyBytes error{};
  std::unique_lock<std::mutex> lock(loader_mutex());
  TorchLazyCode* code =
      library.load(loader(), object.data(), object.size(), name.c_str(), &address, &error);
  lock.unlock();
  if (code == nullptr) {
    throw std::runtime_error(
        fmt::format("the kernel {} cannot be loaded: {}", name, take_text(library, error)));
  }
  add_to_perf_map(address, object.size(), name);
  return std::make_shared<const CompiledKernel>(
      reinterpret_cast<KernelFunction>(address), object,
      std::shared_ptr<void>(code, [](void* loaded) {
        const std::lock_guard<std::mutex> lock(loader_mutex());
        compiler_library().unload(static_cast<TorchLazyCode*>(loaded));
      }));
}

const std::string& kernel_target_description(KernelTarget target) {
  thread_local std::array<std::string, 3> descriptions;
  std::string& description = descriptions.at(static_cast<size_t>(target));
  if (description.empty()) description = compiler_library().describe(compiler_for(target));
  return description;
}

int kernel_vector_bits(KernelTarget target) {
  return compiler_library().vector_bits(compiler_for(target));
}

std::string kernel_listing(const std::string& source, KernelListing listing, KernelTarget target) {
  return compile_to(
      listing == KernelListing::kAssembly ? TORCH_LAZY_OUTPUT_ASSEMBLY : TORCH_LAZY_OUTPUT_LLVM_IR,
      source, "to list", target, CompileTime::kLimited);
}

void set_kernel_compile_limits(KernelCompileLimits wanted) {
  limits.source_bytes = wanted.source_bytes;
  limits.nanoseconds = wanted.nanoseconds;
}

KernelCompilerCounters kernel_compiler_counters() {
  return {counters.compiled, counters.compile_ns, counters.from_disk, counters.cache_hits,
          counters.failed};
}

}  // namespace torch_lazy
