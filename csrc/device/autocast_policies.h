// Which way torch.autocast("lazy") casts the arguments of an operator.
//
// Which operators cast is read from the registrations of the device that lazy tensors live on, so
// that it follows the torch and the vendor's library that run. Which way they cast cannot be read
// from them: the CPU's is a table, every other device's that of CUDA, which PyTorch's header gives
// to all devices (ATen/autocast_mode.h).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace torch_lazy {

enum class AutocastPolicy {
  kNone,           // nothing is cast
  kLow,            // to autocast's dtype
  kFloat,          // to float32
  kFloatResult,    // `dtype=torch.float32` unless the call names a dtype
  kFloatOverload,  // the overload that takes a dtype is called with float32
  kPromote,        // to the widest dtype among the arguments, at least autocast's
  kOwn,  // the device's own kernel is called: it refuses what autocast bans, casts nothing
};

struct AutocastPolicies {
  AutocastPolicy on_cpu = AutocastPolicy::kNone;
  AutocastPolicy elsewhere = AutocastPolicy::kNone;  // where that device casts the operator at all
};

// Both kNone where no device that PyTorch knows casts the operator.
AutocastPolicies autocast_policies(const c10::OperatorHandle& op);

// Where kFloatOverload leads: the overload of `norm` that takes a dtype.
c10::OperatorHandle overload_with_dtype(const c10::OperatorHandle& op);

}  // namespace torch_lazy
