#include "python/stream_bindings.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Event.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace torch_lazy {
namespace {

const c10::Device kDevice(c10::DeviceType::Lazy, 0);

c10::StreamId current_stream() {
  return c10::impl::VirtualGuardImpl(kDevice.type()).getStream(kDevice).id();
}

void set_stream(c10::StreamId id) {
  c10::impl::VirtualGuardImpl(kDevice.type())
      .exchangeStream(c10::Stream(c10::Stream::UNSAFE, kDevice, id));
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
  module.def("current_stream", &current_stream);
  module.def("set_stream", &set_stream);
}

}  // namespace torch_lazy
