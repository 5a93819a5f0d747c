// A kernel with the values of its parameters, as launches and graphs have it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fake_cuda/device.h"
#include "simt/launch.h"

// A kernel of a module, and also of a library: the real handles can be cast in launches too.
struct CUfunc_st {
  std::shared_ptr<const torch_lazy::simt::Program> program;
  std::string name;
  size_t most_shared_bytes = 48 << 10;  // of a block, static and dynamic
  int shared_percent = -1;              // preferred, of a multiprocessor's; -1: none is
};

namespace torch_lazy::fake_cuda {

// Keeps the code and copies of the parameters, so that it can be done at any time.
class KernelWork {
 public:
  // Raises what the emulator raises for a launch that cannot be.
  KernelWork(const CUfunc_st& function, simt::Dim3 grid, simt::Dim3 block, unsigned shared_bytes,
             void** parameters);

  void enqueue(CUstream_st& stream) const;

 private:
  std::shared_ptr<const simt::Program> program_;
  std::string name_;
  simt::Dim3 grid_, block_;
  size_t shared_bytes_, most_shared_bytes_;
  std::vector<std::vector<char>> values_;  // by parameter
};

}  // namespace torch_lazy::fake_cuda
