// TORCH_LAZY_VERIFY=1: every window runs both ways, and the results are compared.
#pragma once

#include "runtime/compiled_trace.h"

namespace torch_lazy {

// Runs the executable on the inputs, and the tape operation by operation on copies of them.
// Raises an error that names the first value that differs beyond rounding.
RunResult run_and_verify(const CompiledTrace::Version& version, const Tape& tape,
                         c10::ArrayRef<at::Tensor> inputs, c10::Device device);

}  // namespace torch_lazy
