// What a driver says of its device: memory, copies and events.
//
// A backend brings it for a device that PyTorch has no kernels for. The core makes a device of
// PyTorch of it (offload/), on which lazy tensors live: windows run on it, every other operator on
// the CPU, and memory moves when one of them needs it where it is not. A vendor who has kernels
// makes a device of it that is independent of torch_lazy (backend/runtime_registration.h).
//
// The device performs work in the order in which it is submitted: copies below and the commands of
// windows alike. What is freed may still be used by work that was submitted before; whoever is
// given that memory next submits later.
//
// No function is given 0 bytes.
//
// Threads: called from any thread, one or several at a time, never with Python's GIL as the only
// means to go on. Errors: raised, by whatever waits next where they were found late.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace torch_lazy {

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  // What torch.device() calls it: "accel". Lower case letters, no name that PyTorch has.
  virtual std::string type_name() const = 0;
  virtual c10::DeviceIndex device_count() const { return 1; }

  // Aligned to 64 bytes. Raises c10::OutOfMemoryError. Called for every tensor, so a driver that is
  // slow at it should keep blocks for later.
  virtual void* allocate(c10::DeviceIndex device, size_t bytes) = 0;
  virtual void free(void* address) noexcept = 0;

  // Within the device's memory; between it and the host's too, unless both functions below are
  // overridden. Need not wait.
  virtual void copy(c10::DeviceIndex device, void* to, const void* from, size_t bytes) = 0;
  // The memory of the host may change, or be freed, once this has returned.
  virtual void copy_to_device(c10::DeviceIndex device, void* to, const void* from, size_t bytes) {
    copy(device, to, from, bytes);
    wait_for(device, record_event(device));
  }
  // Waits: the bytes are there once this has returned.
  virtual void copy_to_host(c10::DeviceIndex device, void* to, const void* from, size_t bytes) {
    copy(device, to, from, bytes);
    wait_for(device, record_event(device));
  }

  // A place in the order of work: behind all that was submitted so far. Numbers need not be unique.
  virtual uint64_t record_event(c10::DeviceIndex device) = 0;
  virtual bool is_done(c10::DeviceIndex device, uint64_t event) = 0;
  virtual void wait_for(c10::DeviceIndex device, uint64_t event) = 0;
};

}  // namespace torch_lazy
