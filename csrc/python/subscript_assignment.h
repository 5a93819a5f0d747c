// What Python's subscript writes without the operators that PyTorch writes it with.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_subscript_assignment(pybind11::module_& module);

}  // namespace torch_lazy
