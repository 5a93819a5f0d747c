#include "runtime/select_backend.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>

#include "backend/execution_device.h"
#include "backend/load_library.h"
#include "backend/registry.h"
#include "base/config.h"
#include "base/warn.h"
#include "runtime/trace_cache.h"

namespace torch_lazy {
namespace {

constexpr const char* kDefaultBackend = "cpu";

// Global: set when the plugin is loaded, as there is one Python.
constinit std::atomic<BackendFinder> backend_finder{nullptr};

// Whether a backend has been selected, or is being: the environment's name counts no more.
constinit std::atomic<bool> selected{false};

void make_available(const std::string& name) {
  const BackendFinder find = backend_finder;
  if (!is_registered(name) && find) load_backend_library(name, find(name));
  backend_by_name(name);
}

}  // namespace

void set_backend_finder(BackendFinder finder) {
  backend_finder = finder;
}

void select_backend(const std::string& name) {
  make_available(name);
  const std::optional<c10::DeviceType> type = backend_by_name(name).device_type();
  if (type && device_name().empty())
    check_execution_device(c10::DeviceTypeName(*type, /*lower_case=*/true));
  selected = true;
  if (name == backend_name()) return;
  set_backend_name(name);
  forget_traces();
}

void select_backend_of_environment() {
  // Others that begin meanwhile, and what the backend's own package does, record with what there
  // is.
  if (!backend_finder.load() || selected.exchange(true)) return;
  const std::string name = backend_name();
  try {
    make_available(name);
  } catch (const std::exception& error) {
    set_backend_name(kDefaultBackend);
    warn(fmt::format("TORCH_LAZY_BACKEND={} is ignored, '{}' compiles windows: {}", name,
                     kDefaultBackend, first_line(error)));
  }
}

c10::DeviceType device_type_of_backend() {
  select_backend_of_environment();
  return backend_by_name(backend_name()).device_type().value_or(c10::DeviceType::CPU);
}

}  // namespace torch_lazy
