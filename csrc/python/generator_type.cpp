// PyTorch's constructor of generators asks the accelerators it knows, and there is no hook for
// another device. So the constructor of the type itself is replaced: `torch.Generator` stays the
// one type of all generators, which isinstance, TorchScript, pickle and torch.load rely on.
#include "python/generator_type.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/python_arg_parser.h>

#include "device/generator.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

newfunc original_new = nullptr;

// The device asked for; nothing where the arguments are not what the original takes, which says so.
std::optional<c10::Device> device_argument(PyObject* args, PyObject* kwargs) {
  PyObject* device = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  const Py_ssize_t named = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
  if (!device && named == 1) device = PyDict_GetItemString(kwargs, "device");
  if (!device || PyTuple_GET_SIZE(args) + named != 1) return std::nullopt;
  if (THPDevice_Check(device)) return reinterpret_cast<THPDevice*>(device)->device;
  if (THPUtils_checkString(device)) return c10::Device(THPUtils_unpackString(device));
  return std::nullopt;
}

PyObject* new_generator(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  HANDLE_TH_ERRORS
  const std::optional<c10::Device> device = device_argument(args, kwargs);
  if (!device || device->type() != c10::DeviceType::Lazy) return original_new(type, args, kwargs);
  // Of the CPU first, so that the object is set up as PyTorch does it.
  const py::tuple no_arguments(0);
  PyObject* const self = original_new(type, no_arguments.ptr(), nullptr);
  if (self) reinterpret_cast<THPGenerator*>(self)->cdata = make_lazy_generator(device->index());
  return self;
  END_HANDLE_TH_ERRORS
}

void install_generator() {
  auto* const type = reinterpret_cast<PyTypeObject*>(THPGeneratorClass);
  if (type->tp_new == &new_generator) return;
  original_new = type->tp_new;
  type->tp_new = &new_generator;
  PyType_Modified(type);
}

py::object default_generator(int index) {
  HANDLE_TH_ERRORS
  return py::reinterpret_steal<py::object>(
      THPGenerator_Wrap(default_lazy_generator(c10::DeviceIndex(index))));
  END_HANDLE_TH_ERRORS_PYBIND
}

}  // namespace

void bind_generator(py::module_& module) {
  module.def("install_generator", &install_generator);
  module.def("default_generator", &default_generator);
}

}  // namespace torch_lazy
