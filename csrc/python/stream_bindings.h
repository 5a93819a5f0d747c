// The stream that a thread has as its current one, and the time between events.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_streams(pybind11::module_& module);

}  // namespace torch_lazy
