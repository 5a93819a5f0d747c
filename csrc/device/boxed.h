// The boxed kernel: any operator, by its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_lazy {

// Records or runs the operator on the stack. Registered as the fallback of device `lazy` and, by
// name, for operators that should stay whole though they have a composite kernel.
void boxed_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

}  // namespace torch_lazy
