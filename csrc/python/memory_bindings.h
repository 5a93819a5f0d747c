// Statistics of the memory of lazy tensors.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_memory(pybind11::module_& module);

}  // namespace torch_lazy
