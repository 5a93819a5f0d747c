// What PyTorch's parser of arguments refuses on a machine without an accelerator, and scripts say:
// a number as a device, `model.to(rank)`, which then is that of device lazy, and `pin_memory=True`,
// for which there is nothing to do. The parser has no hook. So PyTorch's functions are kept, and
// their entries in its tables lead here, where such an argument is replaced: a function stays the
// object that torch.overrides and Dynamo know.
#include "python/device_numbers.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/python_numbers.h>

#include <array>
#include <utility>

#include "backend/machine_devices.h"
#include "python/method_entry.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

constexpr Py_ssize_t kByNameOnly = -1;

struct Function {
  PyCFunctionWithKeywords original = nullptr;
  Py_ssize_t position = kByNameOnly;  // of the device among the positional arguments
};

// Written under the GIL while the plugin loads.
constexpr size_t kMostFunctions = 64;
std::array<Function, kMostFunctions> functions;
size_t function_count = 0;

newfunc original_new_device = nullptr;

// Device lazy of that number; nothing where PyTorch knows what the argument means, or refuses it
// with good reason.
py::object lazy_device_of(PyObject* number) {
  if (!number || !THPUtils_checkLong(number) || machine_has_accelerator()) return {};
  const int64_t index = THPUtils_unpackLong(number);
  if (index < 0 || !std::in_range<c10::DeviceIndex>(index)) return {};
  return py::reinterpret_steal<py::object>(
      THPDevice_New(c10::Device(c10::DeviceType::Lazy, c10::DeviceIndex(index))));
}

// The arguments with another value at a position.
py::tuple with_item(PyObject* args, Py_ssize_t position, const py::object& value) {
  py::list changed = py::reinterpret_borrow<py::tuple>(args);
  changed[size_t(position)] = value;
  return changed;
}

// An argument by its interned name.
PyObject* named(PyObject* kwargs, PyObject* name) {
  return kwargs ? PyDict_GetItemWithError(kwargs, name) : nullptr;
}
PyObject* device_name() {
  static PyObject* const name = PyUnicode_InternFromString("device");
  return name;
}
PyObject* pin_memory_name() {
  static PyObject* const name = PyUnicode_InternFromString("pin_memory");
  return name;
}

PyObject* call(const Function& function, PyObject* self, PyObject* args, PyObject* kwargs) {
  HANDLE_TH_ERRORS
  py::object changed_args, changed_kwargs;  // what `args` and `kwargs` are then, borrowed
  const bool positional = function.position >= 0 && PyTuple_GET_SIZE(args) > function.position;
  if (positional) {
    if (const py::object device = lazy_device_of(PyTuple_GET_ITEM(args, function.position))) {
      changed_args = with_item(args, function.position, device);
      args = changed_args.ptr();
    }
  }
  if (const py::object device = lazy_device_of(named(kwargs, device_name()))) {
    changed_kwargs = py::reinterpret_steal<py::object>(PyDict_Copy(kwargs));
    changed_kwargs["device"] = device;
    kwargs = changed_kwargs.ptr();
  }
  if (named(kwargs, pin_memory_name()) == Py_True && !machine_has_accelerator()) {
    changed_kwargs = py::reinterpret_steal<py::object>(PyDict_Copy(kwargs));
    changed_kwargs["pin_memory"] = false;
    kwargs = changed_kwargs.ptr();
  }
  return function.original(self, args, kwargs);
  END_HANDLE_TH_ERRORS
}

// An entry of a table is a plain function: one for each place in `functions`.
template <size_t place>
PyObject* call_at(PyObject* self, PyObject* args, PyObject* kwargs) {
  return call(functions[place], self, args, kwargs);
}

template <size_t... places>
constexpr auto callers(std::index_sequence<places...>) {
  return std::array<PyCFunctionWithKeywords, sizeof...(places)>{&call_at<places>...};
}

constexpr auto kCallers = callers(std::make_index_sequence<kMostFunctions>());

// Lets a function be called as said above. `position` is the device's among its positional
// arguments, or negative.
void accept_device_numbers(const py::object& function, Py_ssize_t position) {
  PyMethodDef& entry = entry_of(function);
  const PyCFunctionWithKeywords original = with_keywords(entry.ml_meth);
  for (size_t i = 0; i < function_count; ++i)
    if (original == kCallers[i]) return;  // of this table already
  TORCH_CHECK(function_count < kMostFunctions, "raise kMostFunctions");
  functions[function_count] = {original, position};
  entry.ml_meth = plain(kCallers[function_count++]);
}

PyObject* new_device(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  HANDLE_TH_ERRORS
  const Py_ssize_t named_count = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
  if (PyTuple_GET_SIZE(args) + named_count == 1) {
    PyObject* const only = named_count ? named(kwargs, device_name()) : PyTuple_GET_ITEM(args, 0);
    if (py::object device = lazy_device_of(only)) return device.release().ptr();
  }
  return original_new_device(type, args, kwargs);
  END_HANDLE_TH_ERRORS
}

void accept_numbers_in_constructor() {
  if (THPDeviceType.tp_new == &new_device) return;
  original_new_device = std::exchange(THPDeviceType.tp_new, &new_device);
  PyType_Modified(&THPDeviceType);
}

}  // namespace

void bind_device_numbers(py::module_& module) {
  module.def("accept_device_numbers", &accept_device_numbers);
  module.def("accept_numbers_in_constructor", &accept_numbers_in_constructor);
  module.def("machine_has_accelerator", &machine_has_accelerator);
}

}  // namespace torch_lazy
