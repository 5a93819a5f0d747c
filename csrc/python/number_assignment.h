// Numbers that Python's subscript writes.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_number_assignment(pybind11::module_& module);

}  // namespace torch_lazy
