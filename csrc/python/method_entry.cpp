#include "python/method_entry.h"

#include <c10/util/Exception.h>

#include <string>

namespace py = pybind11;

namespace torch_lazy {
namespace {

PyMethodDef& any_entry_of(const py::object& function) {
  if (Py_TYPE(function.ptr()) == &PyMethodDescr_Type)
    return *reinterpret_cast<PyMethodDescrObject*>(function.ptr())->d_method;
  TORCH_CHECK_TYPE(PyCFunction_Check(function.ptr()),
                   "not a function of PyTorch's: ", py::repr(function).cast<std::string>());
  return *reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml;
}

}  // namespace

PyMethodDef& entry_without_arguments(const py::object& function) {
  PyMethodDef& entry = any_entry_of(function);
  TORCH_CHECK_TYPE(entry.ml_flags & METH_NOARGS, entry.ml_name, " takes arguments");
  return entry;
}

PyMethodDef& entry_of(const py::object& function) {
  PyMethodDef& entry = any_entry_of(function);
  TORCH_CHECK_TYPE((entry.ml_flags & METH_VARARGS) && (entry.ml_flags & METH_KEYWORDS),
                   entry.ml_name, " does not take its arguments as a tuple and a dict");
  return entry;
}

}  // namespace torch_lazy
