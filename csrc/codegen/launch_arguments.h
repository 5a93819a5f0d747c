// What a kernel printed for CUDA is launched with: its structure of arguments (printer.h).
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "base/api.h"
#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Of each instance of a kernel.
struct ArgumentForms {
  // By buffer: how many bytes of the host's memory are in the arguments themselves; 0 where their
  // address is.
  std::vector<uint8_t> immediate_bytes;
  std::vector<bool> floats;  // by number slot: see floats_among_numbers()
};
TORCH_LAZY_API ArgumentForms argument_forms(const Kernel& kernel);

// By number slot: it is used as float alone, and so the first 4 bytes of its field are a float. A
// device rounds doubles slowly, and compilers do it again in each round of a loop.
TORCH_LAZY_API std::vector<bool> floats_among_numbers(const Kernel& kernel);

// The field of a number.
TORCH_LAZY_API uint64_t number_field(double number, bool as_float);

// The fields one after another. `pointers` are those of the buffers in order, instance after
// instance; sizes and numbers are the kernel's own.
TORCH_LAZY_API std::vector<uint64_t> launch_arguments(const LoweredKernel& lowered,
                                                      const ArgumentForms& forms,
                                                      c10::ArrayRef<void*> pointers);

}  // namespace torch_lazy::codegen
