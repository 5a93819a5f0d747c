// `torch.Generator(device="lazy")`.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

void bind_generator(pybind11::module_& module);

}  // namespace torch_lazy
