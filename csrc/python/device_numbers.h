// Numbers as devices, and pinned memory, on machines without an accelerator.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_device_numbers(pybind11::module_& module);

}  // namespace torch_lazy
