// The boxed kernel: any operator, by its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_lazy {

// Records or runs the operator on the stack. Registered as the fallback of device `lazy` and, by
// name, for operators that should stay whole though they have a composite kernel.
void boxed_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

// As boxed_kernel, but where autocast is active the operator is taken apart, so that its parts are
// cast.
void composite_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack);

// Operators that are nothing but a composite have it for this key.
constexpr auto kComposite = c10::DispatchKey::CompositeExplicitAutogradNonFunctional;

// An argument as the inner kernel takes it: tensors, devices and generators of the CPU.
c10::IValue inner_value(const c10::IValue& value);

}  // namespace torch_lazy
