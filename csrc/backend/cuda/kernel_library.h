// Printed kernels as the driver launches them: compiled, loaded, kept.
//
// A compile has a price of its own that is that of several kernels, so all kernels of a window that
// are not there yet become one program, or few, which threads compile at the same time. The
// program's source has the prelude once; its image has all of its kernels.
//
// On disk a kernel's source leads to the program that it was compiled in, and that to the image: a
// window of which one kernel is new compiles that one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/cuda/driver.h"
#include "codegen/printer.h"

namespace torch_lazy {
class DiskCache;
}  // namespace torch_lazy

namespace torch_lazy::cuda {

// A kernel in the driver, for all devices of an architecture. It lives as long as this object.
struct LoadedKernel {
  Kernel kernel = nullptr;
  size_t image_bytes = 0;                 // of the image, divided by its kernels
  std::shared_ptr<const void> library{};  // unloaded with the last of its kernels
};

using LoadedKernels = std::vector<std::shared_ptr<const LoadedKernel>>;

// Not thread-safe: the compile thread's.
class KernelLibraries {
 public:
  // `disk` may be null, and outlives this.
  explicit KernelLibraries(DiskCache* disk) : disk_(disk) {}

  // The kernels, in order, for an architecture as compiled_architecture() names it. Their entries
  // differ wherever their sources do. Raises std::runtime_error where one does not compile, and
  // c10::Error where the driver refuses an image.
  LoadedKernels load(const std::vector<codegen::PrintedKernel>& kernels,
                     const std::string& architecture);

 private:
  std::shared_ptr<const LoadedKernel> find(const std::string& key, const std::string& entry);
  std::shared_ptr<const LoadedKernel> from_disk(const std::string& key, const std::string& entry);
  void compile(const std::vector<const codegen::PrintedKernel*>& kernels,
               const std::string& architecture);
  void add(const std::string& key, std::shared_ptr<const LoadedKernel> kernel);
  void drop_unused();

  DiskCache* const disk_;
  std::unordered_map<std::string, std::shared_ptr<const LoadedKernel>> kernels_;  // by key
  size_t bytes_ = 0;                                                              // of their images
  std::unordered_map<std::string, std::weak_ptr<const void>> images_;  // by program: loaded ones
};

}  // namespace torch_lazy::cuda
