// DLPack capsules that are known to be lazy tensors'.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_lazy_capsules(pybind11::module_& module);

}  // namespace torch_lazy
