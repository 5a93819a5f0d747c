#include "python/stream_bindings.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Event.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "backend/execution_device.h"
#include "backend/shared_cpu.h"
#include "device/guard.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

c10::impl::VirtualGuardImpl guard() {
  return {c10::DeviceType::Lazy};
}

c10::StreamId current_stream(int device) {
  return guard().getStream(lazy_device(c10::DeviceIndex(device))).id();
}

c10::StreamId default_stream(int device) {
  return guard().getDefaultStream(lazy_device(c10::DeviceIndex(device))).id();
}

void set_stream(int device, c10::StreamId id) {
  guard().exchangeStream(
      c10::Stream(c10::Stream::UNSAFE, lazy_device(c10::DeviceIndex(device)), id));
}

std::string execution_device_name() {
  return choose_execution_device().name();
}

// Empty before it is chosen.
std::string chosen_execution_device_name() {
  return is_execution_device_chosen() ? execution_device_name() : "";
}

// The type of device whose autocast lists and dtype are those of "lazy".
std::string autocast_device_name() {
  const ExecutionDevice& device = choose_execution_device();
  return device.casts_as_cpu() ? "cpu" : device.name();
}

// Runs what is pending, and waits for a device that works by itself; -1 is the current one.
void synchronize(int device) {
  guard().synchronizeDevice(device < 0 ? guard().getDevice().index() : c10::DeviceIndex(device));
}

// Replaces a method of a type that is PyTorch's own, which Python does not let be assigned to.
void replace_method(const py::type& type, const std::string& name, const py::object& method) {
  auto* const changed = reinterpret_cast<PyTypeObject*>(type.ptr());
  if (PyDict_SetItemString(changed->tp_dict, name.c_str(), method.ptr()) != 0)
    throw py::error_already_set();
  PyType_Modified(changed);
}

// Milliseconds. PyTorch's own function takes no subclass of its type, which torch.lazy.Event is.
double elapsed_time(const py::object& start, const py::object& end) {
  TORCH_CHECK_TYPE(THPEvent_Check(start.ptr()) && THPEvent_Check(end.ptr()),
                   "elapsed_time() takes an event, not ", Py_TYPE(end.ptr())->tp_name);
  return reinterpret_cast<THPEvent*>(start.ptr())
      ->event.elapsedTime(reinterpret_cast<THPEvent*>(end.ptr())->event);
}

}  // namespace

void bind_streams(py::module_& module) {
  module.def("elapsed_time", [](const py::object& start, const py::object& end) {
    HANDLE_TH_ERRORS
    return elapsed_time(start, end);
    END_HANDLE_TH_ERRORS_PYBIND
  });
  module.def("execution_device", &execution_device_name);
  module.def("autocast_device", &autocast_device_name);
  module.def("chosen_execution_device", &chosen_execution_device_name);
  module.def("device_count", [] { return int(choose_execution_device().count); });
  module.def("current_device", [] { return int(choose_execution_device().current()); });
  module.def("set_device", [](int index) { make_current(c10::DeviceIndex(index)); });
  module.def("share_cpu", [](int processes) { share_cpu(c10::DeviceIndex(processes)); });
  module.attr("device_type") = int(c10::DeviceType::Lazy);
  module.def("synchronize", &synchronize, py::call_guard<py::gil_scoped_release>());
  module.def("submit_to_device", &submit_to_device, py::call_guard<py::gil_scoped_release>());
  module.def(
      "submit_to_stream",
      [](std::optional<std::pair<int, c10::StreamId>> place) {
        submit_to_stream(
            place ? std::optional(std::pair(c10::DeviceIndex(place->first), place->second))
                  : std::nullopt);
      },
      py::arg("place") = py::none(), py::call_guard<py::gil_scoped_release>());
  module.def("raise_failures_of_device", &raise_failures_of_device,
             py::call_guard<py::gil_scoped_release>());
  module.def("replace_method", &replace_method);
  module.def("current_stream", &current_stream);
  module.def("default_stream", &default_stream);
  module.def("set_stream", &set_stream);
}

}  // namespace torch_lazy
