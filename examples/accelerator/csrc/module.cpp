#include <pybind11/pybind11.h>

#include "device.h"

namespace py = pybind11;

PYBIND11_MODULE(_C, module) {
  module.def(
      "inject",
      [](std::uint64_t failing_command, std::uint64_t failing_allocation,
         std::uint64_t longest_delay, std::uint64_t seed) {
        accelerator::inject({failing_command, failing_allocation, longest_delay, seed});
      },
      py::arg("failing_command"), py::arg("failing_allocation"), py::arg("longest_delay"),
      py::arg("seed"));
  module.attr("eager") = bool{ACCELERATOR_EAGER};
  module.def("synchronize", &accelerator::synchronize, py::call_guard<py::gil_scoped_release>());
}
