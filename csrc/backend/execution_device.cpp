#include "backend/execution_device.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "backend/machine_devices.h"
#include "backend/shared_cpu.h"
#include "base/config.h"
#include "base/fork.h"

namespace torch_lazy {
namespace {

constinit std::atomic<c10::DeviceType (*)()> device_chooser{nullptr};
constinit std::atomic<void (*)(c10::DeviceType)> device_initializer{nullptr};
constinit std::atomic<int64_t (*)()> device_census{nullptr};

// Processes that a script has started together, of which this is one.
constinit std::atomic<c10::DeviceIndex> processes_sharing_cpu{1};

// Of a name that a user gave.
c10::DeviceType named_type(const std::string& name) {
  c10::DeviceType type{};
  try {
    type = c10::Device(name).type();
  } catch (const c10::Error&) {
    TORCH_CHECK(false, "torch.lazy.config.device is '", name,
                "', which is no type of device that PyTorch knows: import what registers it first, "
                "or name another one");
  }
  TORCH_CHECK(type != c10::DeviceType::Lazy && type != c10::DeviceType::Meta,
              "torch.lazy.config.device is '", name,
              "': expected a device that has memory of its own, such as 'cpu' or 'cuda'");
  return type;
}

c10::DeviceType wanted_type() {
  const std::string name = device_name();
  if (!name.empty()) return named_type(name);
  const auto chooser = device_chooser.load();
  return chooser ? chooser() : c10::DeviceType::CPU;
}

// Who casts anything casts products.
c10::DispatchKey autocast_key_of(c10::DeviceType type) {
  if (!at::autocast::is_autocast_available(type)) return c10::DispatchKey::AutocastCPU;
  const auto key = at::autocast::get_autocast_dispatch_key_from_device_type(type);
  const auto product = c10::Dispatcher::singleton().findSchema({"aten::mm", ""});
  return product && product->hasKernelForDispatchKey(key) ? key : c10::DispatchKey::AutocastCPU;
}

bool has_generators(c10::DeviceType type) {
  if (type == c10::kPrivateUse1 && !at::isPrivateUse1HooksRegistered()) return false;
  try {
    at::globalContext().getAcceleratorHooksInterface(type).getDefaultGenerator(0);
    return true;
  } catch (const c10::Error&) {  // what PyTorch's hooks do unless somebody overrides them
    return false;
  }
}

// What a launcher says in the environment; nothing where it does not, or that is no such number.
std::optional<c10::DeviceIndex> number_from_launcher(const char* variable) {
  const char* const text = std::getenv(variable);
  if (!text) return std::nullopt;
  const std::string_view digits(text);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  const bool fits = number >= 0 && number <= std::numeric_limits<c10::DeviceIndex>::max();
  if (error != std::errc() || end != digits.end() || !fits) return std::nullopt;
  return c10::DeviceIndex(number);
}

// A process of those that a launcher has started on the machine.
struct NumberedProcess {
  c10::DeviceIndex rank, processes;
};

std::optional<NumberedProcess> numbered_by_launcher() {
  const auto rank = number_from_launcher("LOCAL_RANK");
  const auto processes = number_from_launcher("LOCAL_WORLD_SIZE");
  if (!rank || !processes || *rank >= *processes) return std::nullopt;
  return NumberedProcess{*rank, *processes};
}

ExecutionDevice describe_cpu() {
  ExecutionDevice device;
  if (const auto numbered = numbered_by_launcher()) {
    device.cpu_index = numbered->rank;
    device.count = numbered->processes;
  } else {
    device.count = processes_sharing_cpu;
  }
  return device;
}

// Takes another description for the chosen one, which stays readable: another thread may hold it.
void choose_instead(const ExecutionDevice& device) {
  detail::chosen_device.store(new ExecutionDevice(device), std::memory_order_release);
}

ExecutionDevice describe(c10::DeviceType type) {
  if (type == c10::DeviceType::CPU) return describe_cpu();
  ExecutionDevice device;
  const std::string name = c10::DeviceTypeName(type, /*lower_case=*/true);
  TORCH_CHECK(c10::impl::hasDeviceGuardImpl(type), "device lazy is to live on device ", name,
              ", which this PyTorch has no support for: import what registers it first, or choose "
              "another by torch.lazy.config.device");
  device.type = type;
  device.key = c10::computeDispatchKey(std::nullopt, std::nullopt, c10::Device(type));
  device.autocast_key = autocast_key_of(type);
  device.has_generators = has_generators(type);
  device.guard = c10::impl::getDeviceGuardImpl(type);
  device.count = device.guard->deviceCount();
  TORCH_CHECK(device.count > 0 && machine_may_have(type), "device lazy is to live on device ", name,
              ", of which this machine has none: choose another by torch.lazy.config.device");
  return device;
}

// A child has no device but the CPU; what its module says of that is raised when it is chosen.
[[maybe_unused]] const bool left_by_children = (register_at_fork(
                                                    LockOrder::kLeaf, [] {},
                                                    [](bool in_child) {
                                                      const ExecutionDevice* const chosen =
                                                          chosen_execution_device();
                                                      if (in_child && chosen && !chosen->is_cpu())
                                                        detail::chosen_device = nullptr;
                                                    }),
                                                true);

}  // namespace

void set_device_chooser(c10::DeviceType (*chooser)()) {
  device_chooser = chooser;
}

void set_device_initializer(void (*initializer)(c10::DeviceType)) {
  device_initializer = initializer;
}

void set_device_census(int64_t (*census)()) {
  device_census = census;
}

const ExecutionDevice& choose_execution_device() {
  if (const ExecutionDevice* const chosen = chosen_execution_device()) return *chosen;
  auto made = std::make_unique<const ExecutionDevice>(describe(wanted_type()));
  const auto initializer = device_initializer.load();
  if (initializer && !made->is_cpu()) initializer(made->type);
  const ExecutionDevice* none = nullptr;
  if (detail::chosen_device.compare_exchange_strong(none, made.get())) return *made.release();
  return *none;
}

bool is_execution_device_chosen() {
  return chosen_execution_device() != nullptr;
}

void check_lazy_index(c10::Device device, c10::DeviceIndex count) {
  TORCH_CHECK(device.index() < count, "there is no device ", device, ": device lazy has ",
              int(count), count == 1 ? " device, lazy:0" : " devices");
}

c10::Device inner_device(c10::Device device) {
  if (device.type() != c10::DeviceType::Lazy) return device;
  const ExecutionDevice& execution = execution_device();
  check_lazy_index(device, execution.count);
  return execution.device(device.index());
}

void share_cpu(c10::DeviceIndex processes) {
  if (numbered_by_launcher()) return;
  processes_sharing_cpu = processes;
  const ExecutionDevice* const chosen = chosen_execution_device();
  if (!chosen || !chosen->is_cpu()) return;  // a forked child has what its parent chose
  ExecutionDevice shared = *chosen;
  shared.count = processes;
  choose_instead(shared);
}

void make_current(c10::DeviceIndex index) {
  const ExecutionDevice* const chosen = chosen_execution_device();
  check_lazy_index(lazy_device(index), chosen ? chosen->count : c10::DeviceIndex(1));
  if (!chosen) return;
  if (chosen->guard) return chosen->guard->setDevice(chosen->device(index));
  if (index == chosen->cpu_index || numbered_by_launcher()) return;
  const auto census = device_census.load();
  if (census && census() > 0) return;
  ExecutionDevice renamed = *chosen;
  renamed.cpu_index = index;
  choose_instead(renamed);
}

bool leave_execution_device(const std::string& name) {
  const ExecutionDevice* const chosen = chosen_execution_device();
  if (!chosen || name.empty()) return false;
  const c10::DeviceType type = named_type(name);
  if (chosen->type == type) return false;
  const auto census = device_census.load();
  const int64_t storages = census ? census() : 0;
  TORCH_CHECK_VALUE(storages == 0, "device lazy lives on device ", chosen->name(),
                    " and cannot move to '", name, "' while there are lazy tensors, which have ",
                    storages, storages == 1 ? " storage" : " storages",
                    ": drop them before (gc.collect() finds those in reference cycles), or choose "
                    "the device when the process starts, by TORCH_LAZY_DEVICE");
  describe(type);  // raises where there is no such device
  // What was chosen stays readable: another thread may hold it.
  detail::chosen_device.store(nullptr, std::memory_order_release);
  return true;
}

}  // namespace torch_lazy
