// An argument that is left out.
#pragma once

#include <ATen/core/ivalue.h>

namespace torch_lazy::tests {

inline const c10::IValue kNone;

}  // namespace torch_lazy::tests
