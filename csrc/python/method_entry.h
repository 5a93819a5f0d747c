// The tables in which PyTorch has its functions for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_lazy {

// The entry of a function or method that takes its arguments as a tuple and a dict. Who exchanges
// its ml_meth leaves the function the object that torch.overrides and Dynamo know.
PyMethodDef& entry_of(const pybind11::object& function);
// Of one that takes none.
PyMethodDef& entry_without_arguments(const pybind11::object& function);

inline PyCFunctionWithKeywords with_keywords(PyCFunction function) {
  return reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(function));
}
inline PyCFunction plain(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace torch_lazy
