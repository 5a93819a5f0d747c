// Operators that other libraries define, before this one was loaded or after.
#pragma once

#include <atomic>

#include "base/api.h"

namespace torch_lazy {

// Has every operator that is defined from now on looked at, and those that are there already.
void watch_for_new_operators();

namespace new_operators {
extern std::atomic<bool> are_there;
}  // namespace new_operators

// Gives operators that were defined, or got a kernel, their kernels for device `lazy`. Called where
// Python has loaded a library or registered a kernel, without a lock of this library. Nothing
// before the first lazy tensor.
TORCH_LAZY_MODULE_API void register_new_operators();

// For what was defined otherwise: once for each call of an operator on a lazy tensor.
inline void look_at_new_operators() {
  if (new_operators::are_there.load(std::memory_order_relaxed)) [[unlikely]]
    register_new_operators();
}

}  // namespace torch_lazy
