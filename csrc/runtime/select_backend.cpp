#include "runtime/select_backend.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "backend/execution_device.h"
#include "backend/load_library.h"
#include "backend/machine_devices.h"
#include "backend/registry.h"
#include "base/config.h"
#include "base/fork.h"
#include "base/warn.h"
#include "base/without_gil.h"
#include "offload/runtime_device.h"
#include "runtime/compile_or_fall_back.h"
#include "runtime/remembered_traces.h"
#include "runtime/trace_cache.h"

namespace torch_lazy {
namespace {

// Stands in for a backend that cannot be made; `reference` for this one.
constexpr const char* kDefaultBackend = "cpu";
constexpr const char* kCudaBackend = "cuda";

// Global: set when the plugin is loaded, as there is one Python.
constinit std::atomic<BackendFinder> backend_finder{nullptr};

// Global for the same reason.
constinit std::atomic<RuntimeDeviceListener> runtime_device_listener{nullptr};

// Whether the environment's backend has been taken, or another one selected.
constinit std::atomic<bool> settled{false};

// Which thread takes it. Others wait, since the device follows from the backend. Selections are
// few, so one lock serves for good; it is held for a few instructions, never while Python runs.
struct Selecting {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what is below
  std::condition_variable_any ended;
  std::optional<std::thread::id> by;
  uint32_t generation = 0;  // of forks

  // In a child: what threads of the parent did, and waited for, ended with them.
  void leave_parent() {
    if (generation == fork_generation()) return;
    generation = fork_generation();
    std::construct_at(&ended);
    if (by != std::this_thread::get_id()) by.reset();
  }
};

Selecting& selecting() {
  static Selecting& instance = *new Selecting;
  return instance;
}
[[maybe_unused]] Selecting& select_backend_made_at_load = selecting();

// The scope in which the calling thread selects a backend, alone. Not entered where it does
// already: a backend's package uses the device while it is loaded.
class SelectingAlone {
 public:
  SelectingAlone() {
    const WithoutGil without_gil;
    Selecting& all = selecting();
    std::unique_lock<std::mutex> lock(all.mutex);
    all.leave_parent();
    if (all.by == std::this_thread::get_id()) return;
    all.ended.wait(lock, [&] { return !all.by; });
    all.by = std::this_thread::get_id();
    entered_ = true;
  }
  ~SelectingAlone() {
    if (!entered_) return;
    Selecting& all = selecting();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.leave_parent();
    all.by.reset();
    all.ended.notify_all();
  }
  SelectingAlone(const SelectingAlone&) = delete;
  SelectingAlone& operator=(const SelectingAlone&) = delete;

  bool entered() const { return entered_; }

 private:
  bool entered_ = false;
};

Backend& available_backend(const std::string& name) {
  const BackendFinder find = backend_finder;
  if (!is_registered(name) && find) load_backend_library(name, find(name));
  Backend& backend = backend_by_name(name);
  if (DeviceRuntime* const runtime = backend.device_runtime()) {
    TORCH_CHECK(backend.device_type() == c10::kPrivateUse1, "backend '", name,
                "' brings a runtime for its device and says that it compiles for another: its "
                "device_type() must be PrivateUse1");
    register_runtime_device(*runtime);
    if (const RuntimeDeviceListener tell = runtime_device_listener) tell(runtime->type_name());
  }
  return backend;
}

// Whether lazy tensors live on CUDA where nobody says who compiles windows. Asking for devices
// starts CUDA's driver, in a PyTorch that has support for it.
bool lives_on_cuda() {
  if (const std::string device = device_name(); !device.empty())
    return device == "cuda" || device.starts_with("cuda:");
  // ROCm takes CUDA's name for its devices.
  return c10::impl::hasDeviceGuardImpl(c10::kCUDA) && !at::Context::hasROCM() &&
         machine_may_have(c10::kCUDA) &&
         c10::impl::getDeviceGuardImpl(c10::kCUDA)->deviceCount() > 0;
}

// Empty where it is there.
std::string why_not_available(const std::string& name) {
  try {
    available_backend(name);
    return "";
  } catch (const std::exception& error) {
    return first_line(error);
  }
}

// Returns what there is to warn of; empty for nothing.
std::string settle_backend() {
  const bool on_cuda = !is_backend_named() && lives_on_cuda();
  if (on_cuda) set_backend_name(kCudaBackend);
  const std::string name = backend_name();
  const std::string why = why_not_available(name);
  if (why.empty()) return "";
  if (on_cuda) {
    set_device_name("cuda");  // where the hardware is, even where it gets no kernels
  } else if (name != kDefaultBackend && why_not_available(kDefaultBackend).empty()) {
    set_backend_name(kDefaultBackend);
    return fmt::format("TORCH_LAZY_BACKEND={} is ignored, '{}' compiles windows: {}", name,
                       kDefaultBackend, why);
  }
  set_backend_name(kReferenceBackend);
  return fmt::format(
      "no kernels are compiled{}, backend '{}' runs windows operation by operation: {}",
      on_cuda ? " for CUDA, where device lazy is unless TORCH_LAZY_DEVICE=cpu" : "",
      kReferenceBackend, why);
}

}  // namespace

void set_backend_finder(BackendFinder finder) {
  backend_finder = finder;
}

void set_runtime_device_listener(RuntimeDeviceListener listener) {
  runtime_device_listener = listener;
}

void select_backend(const std::string& name) {
  const SelectingAlone alone;
  TORCH_CHECK(alone.entered(), "backend '", name,
              "' cannot be selected by a package while that loads a backend");
  if (const std::optional<c10::DeviceType> type = available_backend(name).device_type())
    if (device_name().empty())  // else the device stays, whatever the backend compiles for
      select_device(c10::DeviceTypeName(*type, /*lower_case=*/true));
  settled = true;
  if (name == backend_name()) return;
  remember_traces(Until::kTheEnd);
  set_backend_name(name);
  forget_traces();
  recall_traces();
}

void select_device(const std::string& name) {
  if (leave_execution_device(name)) forget_traces();
}

void select_backend_of_environment() {
  if (!backend_finder.load() || settled.load(std::memory_order_acquire)) return;
  const SelectingAlone alone;
  if (!alone.entered() || settled) return;
  const std::string warning = settle_backend();
  settled = true;
  if (!warning.empty()) warn(warning);
}

c10::DeviceType device_type_of_backend() {
  select_backend_of_environment();
  TORCH_CHECK(is_registered(backend_name()), "backend '", backend_name(),
              "' is being loaded: its package may not use device lazy before that has ended");
  return backend_by_name(backend_name()).device_type().value_or(c10::DeviceType::CPU);
}

}  // namespace torch_lazy
