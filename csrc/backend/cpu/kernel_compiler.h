// Kernels from their C++ source: compiled in this process by the library libtorch_lazy_compiler.so,
// each source once. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace torch_lazy {

class DiskCache;

// (pointers, sizes, numbers, begin, end); codegen/loop_ir.h says what they are.
using KernelFunction = void (*)(void* const*, const int64_t*, const double*, int64_t, int64_t);

// The instruction set. Whether the machine has it is the caller's business, except for kHost.
enum class KernelTarget : uint8_t { kHost, kAvx2, kBaseline };

// Machine code in this process. It lives as long as this object.
class CompiledKernel {
 public:
  CompiledKernel(KernelFunction function, std::string object, std::shared_ptr<void> code)
      : function(function), object(std::move(object)), code_(std::move(code)) {}

  const KernelFunction function;
  const std::string object;  // the object file, which load_kernel takes as well

 private:
  std::shared_ptr<void> code_;  // unloads `function` when it goes
};

// Whether a compile may take as long as it needs: that one is given up after some time makes what
// runs depend on the machine's load.
enum class CompileTime : uint8_t { kLimited, kUnlimited };

// `source` is complete C++20 without headers that defines `name` as an extern "C" function of type
// KernelFunction. What it refers to and does not define is looked up among the symbols of this
// module and PyTorch's libraries: the C library's, and the vector functions Sleef_*.
// Raises std::runtime_error where the library is missing or the source does not compile, with the
// compiler's messages. Keeps the kernels used last, so that equal sources share one; with `disk`,
// objects that are found there are not compiled, and others are put there.
std::shared_ptr<const CompiledKernel> compile_kernel(const std::string& source,
                                                     const std::string& name,
                                                     KernelTarget target = KernelTarget::kHost,
                                                     DiskCache* disk = nullptr,
                                                     CompileTime time = CompileTime::kLimited);

// A kernel from an object that was compiled under the same kernel_target_description. Not kept.
std::shared_ptr<const CompiledKernel> load_kernel(const std::string& object,
                                                  const std::string& name);

// All that an object depends on besides its source: machine, options, version of the compiler.
// Raises as compile_kernel does where the library is missing.
const std::string& kernel_target_description(KernelTarget target = KernelTarget::kHost);

// Width of the target's widest vectors. Raises as compile_kernel does.
int kernel_vector_bits(KernelTarget target = KernelTarget::kHost);

// To be read: assembly, or LLVM's intermediate representation after its passes.
enum class KernelListing : uint8_t { kAssembly, kLlvmIr };
std::string kernel_listing(const std::string& source, KernelListing listing,
                           KernelTarget target = KernelTarget::kHost);

struct KernelCompileLimits {
  int64_t source_bytes = 1 << 20;
  int64_t nanoseconds = 5'000'000'000;
};
// For all compiles that begin afterwards.
void set_kernel_compile_limits(KernelCompileLimits limits);

struct KernelCompilerCounters {
  int64_t compiled = 0;    // kernels
  int64_t compile_ns = 0;  // nanoseconds spent on them
  int64_t from_disk = 0;   // kernels whose object another process, or this one, had compiled
  int64_t cache_hits = 0;  // requests met by a kernel that was there or on its way
  int64_t failed = 0;      // requests that raised, those that waited for one included
};
KernelCompilerCounters kernel_compiler_counters();

}  // namespace torch_lazy
