#include "python/memory_bindings.h"

#include "memory/caching_allocator.h"
#include "offload/runtime_device.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

py::dict statistics_dict() {
  const MemoryStatistics all = memory_statistics();
  py::dict result;
  result["allocated_bytes.current"] = all.allocated;
  result["allocated_bytes.peak"] = all.peak_allocated;
  result["reserved_bytes.current"] = all.reserved;
  result["reserved_bytes.peak"] = all.peak_reserved;
  result["allocations"] = all.allocations;
  result["cache_hits"] = all.cache_hits;
  result["system_calls"] = all.system_calls;
  return result;
}

// Of the device that a backend's runtime has become.
py::dict offload_statistics_dict() {
  const OffloadMemory all = offload_memory();
  py::dict result;
  result["allocated_bytes.current"] = all.allocated;
  result["allocated_bytes.peak"] = all.peak;
  return result;
}

}  // namespace

void bind_memory(py::module_& module) {
  module.def("memory_stats", &statistics_dict);
  module.def("reset_peak_memory", &reset_peak_memory);
  module.def("offload_memory_stats", &offload_statistics_dict);
  module.def("is_offloaded", &is_offloaded);
  module.def("offload_device_count", [] { return int(offload_runtime().device_count()); });
  module.def("reset_peak_offload_memory", &reset_peak_offload_memory);
  module.def("empty_cache", &empty_cache, py::call_guard<py::gil_scoped_release>());
}

}  // namespace torch_lazy
