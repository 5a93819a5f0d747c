// DLPack capsules of lazy tensors, which say that their memory is the execution device's: they are
// for other libraries. Where one comes back to PyTorch it is to be a lazy tensor again, so it is
// marked by the context of the capsule, of which neither PyTorch nor DLPack makes any use.
#include "python/lazy_capsules.h"

#include <torch/csrc/Exceptions.h>

#include "python/method_entry.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

char mark;  // its address is

void mark_capsule(const py::capsule& capsule) {
  if (PyCapsule_SetContext(capsule.ptr(), &mark) != 0) throw py::error_already_set();
}

bool is_marked(PyObject* object) {
  return object && PyCapsule_CheckExact(object) && PyCapsule_GetContext(object) == &mark;
}

PyCFunctionWithKeywords original_asarray = nullptr;

PyObject* asarray(PyObject* self, PyObject* args, PyObject* kwargs) {
  HANDLE_TH_ERRORS
  const auto lazy_tensor = [](PyObject* capsule) {
    return py::module_::import("torch_lazy").attr("from_dlpack")(py::handle(capsule));
  };
  if (PyTuple_GET_SIZE(args) > 0 && is_marked(PyTuple_GET_ITEM(args, 0))) {
    py::list changed = py::reinterpret_borrow<py::tuple>(args);
    changed[0] = lazy_tensor(PyTuple_GET_ITEM(args, 0));
    return original_asarray(self, py::tuple(changed).ptr(), kwargs);
  }
  if (PyObject* const object = kwargs ? PyDict_GetItemString(kwargs, "obj") : nullptr;
      is_marked(object)) {
    const py::dict changed(**py::reinterpret_borrow<py::dict>(kwargs));
    changed["obj"] = lazy_tensor(object);
    return original_asarray(self, args, changed.ptr());
  }
  return original_asarray(self, args, kwargs);
  END_HANDLE_TH_ERRORS
}

// Lets torch.asarray make lazy tensors of marked capsules.
void accept_lazy_capsules(const py::object& function) {
  PyMethodDef& entry = entry_of(function);
  if (with_keywords(entry.ml_meth) == &asarray) return;
  original_asarray = with_keywords(entry.ml_meth);
  entry.ml_meth = plain(&asarray);
}

}  // namespace

void bind_lazy_capsules(py::module_& module) {
  module.def("mark_capsule", &mark_capsule);
  module.def("is_lazy_capsule", [](const py::object& object) { return is_marked(object.ptr()); });
  module.def("accept_lazy_capsules", &accept_lazy_capsules);
}

}  // namespace torch_lazy
