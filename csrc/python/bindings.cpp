// The extension module torch_lazy._C: the C++ core as Python sees it, nothing else.
#include <fmt/ranges.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "backend/registry.h"
#include "base/config.h"
#include "base/metrics.h"
#include "base/pass_times.h"
#include "base/warn.h"
#include "device/autocast.h"
#include "device/exchange.h"
#include "device/register.h"
#include "ir/draw.h"
#include "ir/graph_hash.h"
#include "ir/print.h"
#include "python/memory_bindings.h"
#include "runtime/compile_queue.h"
#include "runtime/compiled_trace.h"
#include "tape/current_location.h"
#include "trace/recorder.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

using ReleaseGil = py::call_guard<py::gil_scoped_release>;

py::dict metrics_dict() {
  const Metrics& all = metrics();
  py::dict result;
  const Metrics::Operations operations = all.operations();
  result["recorded"] = operations.recorded;
  result["deferred"] = operations.deferred;
  result["eager"] = operations.eager;
  result["compiles"] = all.compiles.load();
  result["run_ns"] = all.run_ns.load();
  result["windows_run"] = all.windows_run.load();
  result["onednn_products"] = all.onednn_products.load();
  result["dynamic_scalars"] = all.dynamic_scalars.load();
  result["windows"] = all.windows.counts();
  result["flushes"] = all.flushes.counts();
  result["syncs"] = all.syncs.counts();
  result["fallbacks"] = all.fallbacks.counts();
  result["disk_cache"] = all.disk_cache.counts();
  result["compile_ns"] = pass_times();
  return result;
}

py::list graphs() {
  py::list result;
  for (const auto& graph : compiled_graphs()) {
    py::dict described;
    described["text"] = print_graph(*graph);
    described["dot"] = draw_graph(*graph);
    described["hash"] = hash_graph(*graph).hex();
    result.append(described);
  }
  return result;
}

const char* defer_name(Defer defer) {
  switch (defer) {
    case Defer::kHot:
      return "hot";
    case Defer::kAlways:
      return "always";
    case Defer::kNever:
      return "never";
  }
  return "hot";
}

void set_defer(const std::string& name) {
  if (name == "always") {
    throw py::value_error(
        "defer = 'always' needs a backend without eager kernels, and none is registered: use "
        "'hot' or 'never'");
  }
  if (name != "hot" && name != "never")
    throw py::value_error("defer must be 'hot' or 'never', not '" + name + "'");
  config().defer = name == "hot" ? Defer::kHot : Defer::kNever;
}

void set_rng(const std::string& name) {
  if (name != "philox" && name != "eager")
    throw py::value_error("rng must be 'philox' or 'eager', not '" + name + "'");
  config().rng = name == "philox" ? RandomNumbers::kPhilox : RandomNumbers::kEager;
}

bool wait_for(std::optional<double> seconds) {
  queue_all_compiles();
  if (!seconds) return wait_for_compiles(std::nullopt);
  return wait_for_compiles(std::chrono::milliseconds(int64_t(*seconds * 1000)));
}

// A Python warning; one that a filter turns into an error is raised from the operator's call.
void warn_in_python(const std::string& message) {
  const py::gil_scoped_acquire gil;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) {
    python_error error;
    error.persist();
    throw std::move(error);
  }
}

void bind_config(py::module_& module) {
  module.def("get_defer", [] { return defer_name(config().defer); });
  module.def("set_defer", &set_defer);
  module.def("get_rng", [] { return config().rng == RandomNumbers::kPhilox ? "philox" : "eager"; });
  module.def("set_rng", &set_rng);
#define TORCH_LAZY_SETTING(name)                                 \
  module.def("get_" #name, [] { return config().name.load(); }); \
  module.def("set_" #name, [](decltype(config().name.load()) value) { config().name = value; })
  TORCH_LAZY_SETTING(verify);
  TORCH_LAZY_SETTING(check_effects);
  TORCH_LAZY_SETTING(verify_passes);
  TORCH_LAZY_SETTING(warn_fallbacks);
  TORCH_LAZY_SETTING(perf_map);
  TORCH_LAZY_SETTING(debug);
  TORCH_LAZY_SETTING(window_operations);
  TORCH_LAZY_SETTING(window_bytes);
  TORCH_LAZY_SETTING(rematerialize_bytes);
#undef TORCH_LAZY_SETTING
  module.def("get_cache_dir", [] { return config().cache_directory; });
  module.def("get_cache_bytes", [] { return config().cache_bytes; });
  module.def("get_backend", &backend_name);
  module.def("device_name", [] { return backend_by_name(backend_name()).device_name(); });
  module.def("set_backend", [](const std::string& wanted) {
    const std::string name = current_backend_name(wanted);
    const std::vector<std::string> known = registered_backends();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw py::value_error(
          fmt::format("there is no backend '{}'; there are: {}", name, fmt::join(known, ", ")));
    set_backend_name(name);
  });
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.attr("torch_version") = TORCH_LAZY_TORCH_VERSION;
  module.def("register_device", [] {
    set_warning_sink(&warn_in_python);
    register_reference_backend();
    register_cpu_backend();
    register_device();
  });
  module.def("clear_autocast_cache", &clear_autocast_cache);
  module.def("set_library_prefixes", &set_library_prefixes);
  module.def("synchronize", &Recorder::synchronize_all, ReleaseGil());
  module.def("discard", &Recorder::discard_all, ReleaseGil());
  module.def("wait_for_compiles", &wait_for, ReleaseGil());
  module.def("metrics", &metrics_dict);
  module.def("reset_metrics", [] {
    metrics().reset();
    reset_pass_times();
  });
  module.def("graphs", &graphs);
  module.def("export_inner", &export_inner, ReleaseGil());
  module.def("import_inner", &import_inner, ReleaseGil());
  bind_config(module);
  bind_memory(module);
}

}  // namespace torch_lazy
