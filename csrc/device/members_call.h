// Operators that take or make tensors with members (members.h): a sync point, and a run on the
// execution device, on tensors of the same members' memory. Where that device has no such kernels
// they run on the host.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <initializer_list>
#include <string_view>

namespace torch_lazy {

// The kernel for any such operator, by its schema.
void members_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack);

// Registers it for every operator that has no other kernel for the key ...
void register_members_fallback(c10::DispatchKey key);
// ... and, as composite kernels hide it, for those that it applies to among the operators whose
// names begin so.
void register_members_kernel(c10::DispatchKey key, bool (*applies)(const c10::OperatorHandle&),
                             std::initializer_list<std::string_view> names = {"aten::"});

}  // namespace torch_lazy
