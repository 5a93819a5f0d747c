// Lists that Python makes of the elements of tensors: `x.tolist()`. PyTorch copies what is not on
// the CPU. Lazy tensors of the CPU are read where they lie, as the CPU's are.
#include "python/lists_of_elements.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "device/exchange.h"
#include "python/method_entry.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

PyCFunction original_tolist = nullptr;

PyObject* tolist(PyObject* self, PyObject* unused) {
  HANDLE_TH_ERRORS
  if (THPVariable_CheckExact(self) && !at::impl::torch_function_mode_enabled()) {
    const at::Tensor& tensor = THPVariable_Unpack(self);
    at::Tensor readable;
    if (tensor.device().type() == c10::DeviceType::Lazy) {
      const py::gil_scoped_release released;  // a window may run
      readable = readable_inner(tensor);
    }
    if (readable.defined()) {
      const auto object = py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(readable)));
      return original_tolist(object.ptr(), unused);
    }
  }
  return original_tolist(self, unused);
  END_HANDLE_TH_ERRORS
}

void make_lists_in_place(const py::object& function) {
  PyMethodDef& entry = entry_without_arguments(function);
  if (entry.ml_meth == &tolist) return;
  original_tolist = std::exchange(entry.ml_meth, &tolist);
}

}  // namespace

void bind_lists_of_elements(py::module_& module) {
  module.def("make_lists_in_place", &make_lists_in_place);
}

}  // namespace torch_lazy
