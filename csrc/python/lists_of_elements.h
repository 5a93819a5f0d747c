// Lists that Python makes of the elements of tensors.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_lists_of_elements(pybind11::module_& module);

}  // namespace torch_lazy
