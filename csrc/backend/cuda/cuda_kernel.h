// A kernel of a plan, ready to be launched on devices of CUDA.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/kernel_library.h"
#include "codegen/launch_arguments.h"
#include "codegen/launch_shape.h"

namespace torch_lazy::cuda {

struct CudaKernel {
  std::shared_ptr<const LoadedKernel> code;
  codegen::LaunchShape shape;
  codegen::ArgumentForms argument_forms;
  std::string name;
};

}  // namespace torch_lazy::cuda
