// Where lazy tensors live: one type of device for the process. `lazy:N` is its device N.
//
// It is the one that `config.device` names, else the chosen backend's, chosen when the first lazy
// tensor is made and not before: to ask a device for anything may start its driver, which an import
// must not. While there is no lazy tensor, another one can be chosen. Whatever differs between
// devices asks here: dispatch keys, memory, streams, copies.
//
// A process has one CPU, which is lazy:0, or lazy:R in process R of those that a launcher such as
// torchrun started on the machine. There the others' names mean it too: scripts for devices that
// processes share name one by a process's number, and load what was saved from another.
//
// Threads: reading is one load. Two threads may both choose; the first to have done so is taken.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <string>

#include "base/api.h"

namespace torch_lazy {

struct ExecutionDevice {
  c10::DeviceType type = c10::DeviceType::CPU;
  // Kernels are called with it: below everything the dispatcher did for the lazy tensor.
  c10::DispatchKey key = c10::DispatchKey::CPU;
  // Whose registrations say what autocast casts: the device's own where it has any.
  c10::DispatchKey autocast_key = c10::DispatchKey::AutocastCPU;
  c10::DeviceIndex count = 1;
  c10::DeviceIndex cpu_index = 0;  // N of the only lazy:N on the CPU
  bool has_generators = true;      // else its random numbers are the CPU's generators'
  // Of streams, events and the current device; null on the CPU, which has none of them.
  const c10::impl::DeviceGuardImplInterface* guard = nullptr;

  bool is_cpu() const { return type == c10::DeviceType::CPU; }
  bool casts_as_cpu() const { return autocast_key == c10::DispatchKey::AutocastCPU; }
  std::string name() const { return c10::DeviceTypeName(type, /*lower_case=*/true); }
  // What stands behind lazy:`index`; -1 is the current one.
  c10::Device device(c10::DeviceIndex index) const {
    if (is_cpu()) return c10::Device(type);
    return c10::Device(type, index >= 0 ? index : current());
  }
  // The index of the current device.
  c10::DeviceIndex current() const { return guard ? guard->getDevice().index() : cpu_index; }
};

// Which type of device the chosen backend compiles for, if `config.device` names none; the CPU
// until this is called. May load the backend.
TORCH_LAZY_MODULE_API void set_device_chooser(c10::DeviceType (*chooser)());

// The device, chosen now unless it was before. Raises where it cannot be: no such type of device,
// or a backend that cannot be loaded.
inline const ExecutionDevice& execution_device();

// The same without choosing; null where no lazy tensor was made yet.
inline const ExecutionDevice* chosen_execution_device();

// Called when another type than the CPU is chosen, with no lock held: what its Python module does
// before the device is first used, which PyTorch sees to for tensors that it makes there itself.
TORCH_LAZY_MODULE_API void set_device_initializer(void (*initializer)(c10::DeviceType));

// Runs all that is pending, and says how many storages of lazy tensors there are.
TORCH_LAZY_MODULE_API void set_device_census(int64_t (*census)());

// The next lazy tensor may be on a device of another type, that of the given name: the device is
// chosen again. Raises ValueError where lazy tensors live on another device already. False where
// there is nothing to leave: no device is chosen, it is that one, or the name is empty. No other
// thread may make lazy tensors meanwhile.
TORCH_LAZY_MODULE_API bool leave_execution_device(const std::string& name);

inline c10::Device lazy_device(c10::DeviceIndex index) {
  return {c10::DeviceType::Lazy, index};
}
// N of the lazy:N that the device is behind; the CPU has no index.
inline c10::DeviceIndex lazy_index(c10::Device inner);
// Raises where there is no such lazy:N among `count`.
void check_lazy_index(c10::Device device, c10::DeviceIndex count);
// The device behind lazy:N; any other device as it is. Raises where there is no lazy:N.
c10::Device inner_device(c10::Device device);

// execution_device() for the extension module, which is another library.
TORCH_LAZY_MODULE_API const ExecutionDevice& choose_execution_device();
TORCH_LAZY_MODULE_API bool is_execution_device_chosen();

// ---------------------------------------------------------------- implementation

namespace detail {
inline constinit std::atomic<const ExecutionDevice*> chosen_device{nullptr};
}  // namespace detail

inline const ExecutionDevice& execution_device() {
  const ExecutionDevice* const chosen = detail::chosen_device.load(std::memory_order_acquire);
  return chosen ? *chosen : choose_execution_device();
}

inline c10::DeviceIndex lazy_index(c10::Device inner) {
  return inner.has_index() ? inner.index() : execution_device().cpu_index;
}

inline const ExecutionDevice* chosen_execution_device() {
  return detail::chosen_device.load(std::memory_order_acquire);
}

}  // namespace torch_lazy
