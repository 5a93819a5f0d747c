// The extension module torch_lazy._C: the C++ core as Python sees it, nothing else.
#include <fmt/ranges.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/execution_device.h"
#include "backend/load_library.h"
#include "backend/reference/reference_backend.h"
#include "backend/registry.h"
#include "base/metrics.h"
#include "base/pass_times.h"
#include "base/settings.h"
#include "base/warn.h"
#include "device/autocast.h"
#include "device/exchange.h"
#include "device/new_operators.h"
#include "device/register.h"
#include "ir/draw.h"
#include "ir/graph_hash.h"
#include "ir/print.h"
#include "python/device_numbers.h"
#include "python/generator_type.h"
#include "python/lazy_capsules.h"
#include "python/lists_of_elements.h"
#include "python/memory_bindings.h"
#include "python/profile_bindings.h"
#include "python/stream_bindings.h"
#include "python/subscript_assignment.h"
#include "runtime/compile_queue.h"
#include "runtime/select_backend.h"
#include "runtime/trace_cache.h"
#include "tape/python_frames.h"
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
  result["bypassed"] = operations.bypassed;
  for (const auto& [name, counter] : Metrics::counters()) result[name] = (all.*counter).load();
  for (const auto& [name, counters] : Metrics::counters_by_name())
    result[name] = (all.*counters).counts();
  result["chosen"] = all.explained_choices();
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

// The setting of that name; raises where there is none.
const Setting& setting_named(const std::string& name) {
  if (const Setting* setting = find_setting(name)) return *setting;
  std::vector<std::string> names;
  for (const Setting& setting : settings()) names.push_back(setting.name);
  throw py::attribute_error(fmt::format("torch_lazy.config has no setting '{}'; there are: {}",
                                        name, fmt::join(names, ", ")));
}

void set_setting_named(const std::string& name, const SettingValue& value) {
  const Setting& setting = setting_named(name);
  if (setting.read_only)
    throw py::attribute_error(
        fmt::format("torch_lazy.config.{} is chosen when the process starts: set {} in the "
                    "environment instead",
                    name, setting.variable));
  const py::gil_scoped_release released;  // a backend may take its time to begin
  set_setting(setting, value);
}

// What documentation shows of each setting.
py::list describe_settings() {
  py::list result;
  for (const Setting& setting : settings()) {
    py::dict described;
    described["name"] = setting.name;
    described["meaning"] = setting.meaning;
    described["variable"] = setting.variable;
    described["default"] = setting.usual;
    described["read_only"] = setting.read_only;
    described["spellings"] = setting.spellings;
    result.append(described);
  }
  return result;
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

// The interpreter is about to go, and a compile that takes long may outlive it: what it then has to
// say it prints.
void discard_at_exit() {
  Recorder::discard_all();
  set_warning_sink(nullptr);
}

// Where the library of a backend is, as the entry points of installed packages say.
std::string find_backend_library(const std::string& name) {
  const py::gil_scoped_acquire gil;
  try {
    return py::module_::import("torch_lazy.backends").attr("_library_of")(name).cast<std::string>();
  } catch (py::error_already_set& error) {
    const std::string message = py::str(error.value());
    if (error.matches(PyExc_ValueError)) throw std::invalid_argument(message);
    throw std::runtime_error(message);
  }
}

// Makes the module torch.NAME of a device that a backend's runtime has become.
void register_device_module(const std::string& name) {
  const py::gil_scoped_acquire gil;
  py::module_::import("torch_lazy.runtime_device").attr("_register")(name);
}

// What torch.zeros(3, device="cuda") does first: seeds and memory statistics of torch.cuda wait for
// it. It raises in a forked child of a process that used the device.
void initialize_device_module(c10::DeviceType type) {
  const py::gil_scoped_acquire gil;
  const std::string name = c10::DeviceTypeName(type, /*lower_case=*/true);
  const py::object module = py::getattr(py::module_::import("torch"), name.c_str(), py::none());
  if (!py::hasattr(module, "_lazy_init")) return;
  try {
    module.attr("_lazy_init")();
  } catch (const py::error_already_set& error) {
    throw std::runtime_error(py::str(error.value()));
  }
}

// name, file, error, libraries
py::list describe_backends() {
  py::list result;
  for (const RegisteredBackend& backend : registered_backends())
    result.append(py::make_tuple(backend.name, backend.file, backend.error, backend.libraries));
  return result;
}

void bind_config(py::module_& module) {
  module.def("settings", &describe_settings);
  module.def("registered_backends", &describe_backends);
  module.def("load_backend_library", &load_backend_library, ReleaseGil());
  module.def("get_setting",
             [](const std::string& name) { return setting_named(name).get(config()); });
  // No conversion: a float would pass for a bool.
  module.def("set_setting", &set_setting_named, py::arg("name"), py::arg("value").noconvert());
  module.def(
      "device_name",
      [] {
        select_backend_of_environment();
        return backend_by_name(backend_name()).device_name();
      },
      ReleaseGil());
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.attr("torch_version") = TORCH_LAZY_TORCH_VERSION;
  module.def("register_device", [] {
    config();  // reads the environment while a warning cannot raise
    register_reference_backend();
    register_cpu_backend();
    register_cuda_backend();
    set_backend_finder(&find_backend_library);
    set_runtime_device_listener(&register_device_module);
    set_backend_selector(&select_backend);
    set_device_chooser(&device_type_of_backend);
    set_device_initializer(&initialize_device_module);
    set_device_check(&select_device);
    set_warning_sink(&warn_in_python);
    register_device();
  });
  module.def("clear_autocast_cache", &clear_autocast_cache);
  module.def("set_library_prefixes", &set_library_prefixes);
  module.def("set_deferring", &Recorder::set_deferring, ReleaseGil());
  module.def("set_capturing", &Recorder::set_capturing, ReleaseGil());
  module.def("discard", &discard_at_exit, ReleaseGil());
  module.def("wait_for_compiles", &wait_for, ReleaseGil());
  module.def("metrics", &metrics_dict);
  module.def("reset_metrics", [] {
    metrics().reset();
    reset_pass_times();
  });
  module.def("graphs", &graphs);
  module.def("export_inner", &export_inner, ReleaseGil());
  module.def("import_inner", &import_inner, ReleaseGil());
  module.def("has_buffer", &has_buffer);
  module.def("register_new_operators", &register_new_operators);
  module.def("storage_buffer", &storage_buffer, py::arg("storage"), py::arg("shared") = false,
             ReleaseGil());
  module.def("storage_over", &storage_over);
  module.def("new_storage", &new_storage);
  module.def("resize_storage", &resize_storage, ReleaseGil());
  bind_config(module);
  bind_memory(module);
  bind_profile(module);
  bind_generator(module);
  bind_device_numbers(module);
  bind_subscript_assignment(module);
  bind_lists_of_elements(module);
  bind_lazy_capsules(module);
  bind_streams(module);
}

}  // namespace torch_lazy
