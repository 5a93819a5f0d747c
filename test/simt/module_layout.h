// What a compiled module tells of itself: constant data that the instrumentation writes and the
// emulator reads. Plain C structures, since the compiler shares no C++ type with its user.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torch_lazy::simt {

enum class SiteKind : int32_t { kLoad, kStore, kAtomic, kSynchronization };

// A place in the source that touches memory or waits for other threads.
struct Site {
  int32_t line;   // of the kernel's source; of the call, where the place is in a function called
  int32_t bytes;  // of the access
  int32_t alignment;  // that the access needs
  SiteKind kind;
};

struct SharedVariable {
  const char* name;
  void* memory;  // of whichever block runs
  int64_t bytes;
  int64_t alignment;
  int64_t is_dynamic;  // extern: `bytes` is the most that there can be
  const char* kernel;  // that alone uses it; empty: several do, or a function that is no kernel
};

struct KernelEntry {
  const char* name;
  // Runs one thread. `parameters` holds the address of each parameter, as in cuLaunchKernel.
  void (*run)(void** parameters);
  const int64_t* parameter_bytes;  // of each parameter
  int64_t parameter_count;
};

struct Module {
  const Site* sites;
  const SharedVariable* shared;
  const KernelEntry* kernels;
  int64_t site_count;
  int64_t shared_count;
  int64_t kernel_count;
};

// The module's one symbol.
inline constexpr const char* kModuleSymbol = "simt_module";

}  // namespace torch_lazy::simt
