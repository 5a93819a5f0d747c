// Which arguments of which operators may hold a number that is an argument of the trace.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstdint>

namespace torch_lazy {

// By schema argument, one bit each: its floating-point numbers may be dynamic.
uint32_t dynamic_scalar_arguments(const c10::FunctionSchema& schema);

// Whether its numbers take part in the dtype of the tensors it is given, and not in that of what it
// returns: x < 0.5.
bool is_comparison(const c10::FunctionSchema& schema);

}  // namespace torch_lazy
