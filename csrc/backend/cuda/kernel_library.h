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
  std::shared_ptr<const void> library{};  // unloaded with the last of its kernels
};

// Where images are kept for the next process; null where the settings say that none are. May warn,
// which takes the GIL.
std::unique_ptr<DiskCache> open_kernel_cache();

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
  struct LoadedImage {
    std::weak_ptr<const void> library;  // expired when none of its kernels is left
    size_t bytes = 0;
  };

  std::shared_ptr<const LoadedKernel> find(const std::string& key, const std::string& entry);
  std::shared_ptr<const LoadedKernel> from_disk(const std::string& key, const std::string& entry);
  void compile(const std::vector<const codegen::PrintedKernel*>& kernels,
               const std::string& architecture);
  // Loads the image of the program, and remembers it.
  std::shared_ptr<const void> load_image(const std::string& id, const std::string& image);
  void drop_unused();

  DiskCache* const disk_;
  std::unordered_map<std::string, std::shared_ptr<const LoadedKernel>> kernels_;  // by key
  std::unordered_map<std::string, LoadedImage> images_;                           // by program
};

}  // namespace torch_lazy::cuda
