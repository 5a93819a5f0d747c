// The event log behind torch.lazy.profile().
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_profile(pybind11::module_& module);

}  // namespace torch_lazy
