// A kernel of a plan, ready to be launched on devices of CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/kernel_library.h"
#include "codegen/launch_shape.h"

namespace torch_lazy::cuda {

struct CudaKernel {
  std::shared_ptr<const LoadedKernel> code;
  codegen::LaunchShape shape;
  std::vector<uint8_t> immediate_bytes;  // by buffer; see codegen/launch_arguments.h
  std::string name;
};

}  // namespace torch_lazy::cuda
