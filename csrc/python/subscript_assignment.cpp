// Numbers that Python's subscript writes: `mask[i, :n] = True`. PyTorch fills the part of a CPU
// tensor, and of any other device's makes a tensor of the number, views and expands it and copies:
// four operations for one. Here lazy tensors are filled, too, for what can be said of it before
// PyTorch looks at the index: numbers of Python's own, and indices that are views.
//
// And parts that Python's subscript writes to where they are: `x[i] += 1` assigns to `x[i]` what it
// has changed in place. PyTorch copies the elements to themselves.
#include "python/subscript_assignment.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <cmath>
#include <limits>
#include <optional>

#include "ops/same_elements.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

objobjargproc original_assign = nullptr;

// A number as PyTorch makes tensors of it: a truth value is an integer. Nothing for an integer
// beyond 64 bits, which is PyTorch's to refuse.
std::optional<at::Scalar> number_of(PyObject* value) {
  if (PyFloat_CheckExact(value)) return at::Scalar(PyFloat_AS_DOUBLE(value));
  if (!PyLong_CheckExact(value) && !PyBool_Check(value)) return std::nullopt;
  int overflow = 0;
  const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return std::nullopt;
  return at::Scalar(int64_t(integer));
}

bool selects_by_itself(PyObject* index) {
  return PyLong_CheckExact(index) || PySlice_Check(index) || index == Py_None ||
         index == Py_Ellipsis;
}

// Whether what the index selects is a view, whatever the tensor.
bool selects_view(PyObject* index) {
  if (!PyTuple_CheckExact(index)) return selects_by_itself(index);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i)
    if (!selects_by_itself(PyTuple_GET_ITEM(index, i))) return false;
  return true;
}

// Autograd records a write, or refuses it, by what PyTorch makes of the index.
bool is_known_to_autograd(const at::Tensor& tensor) {
  if (tensor.is_inference()) return !c10::InferenceMode::is_enabled();
  return tensor.requires_grad() || (tensor.is_view() && tensor._base().requires_grad());
}

bool is_plain_lazy(PyObject* object) {
  if (!THPVariable_CheckExact(object)) return false;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  return tensor.device().type() == c10::DeviceType::Lazy && tensor.layout() == at::kStrided &&
         !tensor.is_quantized() && !is_known_to_autograd(tensor) &&
         at::has_internal_overlap(tensor) != at::MemOverlap::Yes;
}

// A filling operator refuses what overflows; a tensor of the number is infinite then, or the
// greatest there is.
bool overflows(const at::Scalar& number, c10::ScalarType dtype) {
  if (!c10::isFloatingType(dtype) || dtype == at::kDouble) return false;
  if (c10::elementSize(dtype) == 1) return true;  // not worth telling them apart
  // The range of bfloat16 is float's.
  const double greatest = dtype == at::kHalf ? double(std::numeric_limits<at::Half>::max())
                                             : double(std::numeric_limits<float>::max());
  return std::abs(number.toDouble()) > greatest;
}

// A part of the same tensor as far as memory goes. Python's modes are shown PyTorch's operators.
bool may_be_part(PyObject* value, const at::Tensor& whole) {
  if (!is_plain_lazy(value) || c10::impl::TorchDispatchModeTLS::any_modes_set()) return false;
  const at::Tensor& part = THPVariable_Unpack(value);
  return part.has_storage() && whole.has_storage() && part.storage().is_alias_of(whole.storage());
}

int assign(PyObject* self, PyObject* index, PyObject* value) {
  HANDLE_TH_ERRORS
  if (value && is_plain_lazy(self) && selects_view(index) &&
      !at::impl::torch_function_mode_enabled() && !torch::jit::tracer::isTracing()) {
    const std::optional<at::Scalar> number = number_of(value);
    if (number && !overflows(*number, THPVariable_Unpack(self).scalar_type())) {
      const py::object part = py::reinterpret_steal<py::object>(PyObject_GetItem(self, index));
      if (!part) return -1;
      const py::gil_scoped_release released;  // a window may run
      THPVariable_Unpack(part.ptr()).fill_(*number);
      return 0;
    }
    if (may_be_part(value, THPVariable_Unpack(self))) {
      const py::object part = py::reinterpret_steal<py::object>(PyObject_GetItem(self, index));
      if (!part) return -1;
      const at::Tensor& written = THPVariable_Unpack(part.ptr());
      if (are_same_elements(written, THPVariable_Unpack(value))) {
        if (!written.is_inference()) written.unsafeGetTensorImpl()->bump_version();
        return 0;
      }
    }
  }
  return original_assign(self, index, value);
  END_HANDLE_TH_ERRORS_RET(-1)
}

// Python looks at the table of the very class, to which it copied the function of the base class.
void assign_in_place() {
  objobjargproc& entry =
      reinterpret_cast<PyTypeObject*>(THPVariableClass)->tp_as_mapping->mp_ass_subscript;
  if (entry == &assign) return;
  original_assign = std::exchange(entry, &assign);
}

}  // namespace

void bind_subscript_assignment(py::module_& module) {
  module.def("assign_in_place", &assign_in_place);
}

}  // namespace torch_lazy
