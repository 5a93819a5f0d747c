#pragma once

#include <torch_lazy/backend/device_runtime.h>

#include <cstring>
#include <string>
#include <vector>

#include "device.h"

namespace accelerator {

/// The driver as torch_lazy takes it where PyTorch has no kernels for the device.
class Runtime final : public torch_lazy::DeviceRuntime {
 public:
  std::string type_name() const override { return "accel"; }

  void* allocate(c10::DeviceIndex, std::size_t bytes) override {
    return accelerator::allocate(bytes);
  }
  void free(void* address) noexcept override { accelerator::free(address); }

  void copy_to_device(c10::DeviceIndex, void* to, const void* from, std::size_t bytes) override {
    const auto* const first = static_cast<const char*>(from);
    enqueue([to = in_command(to), kept = std::vector<char>(first, first + bytes)] {
      std::memcpy(to, kept.data(), kept.size());
    });
  }
  void copy_to_host(c10::DeviceIndex, void* to, const void* from, std::size_t bytes) override {
    accelerator::copy(to, from, bytes);
    synchronize();
  }
  void copy(c10::DeviceIndex, void* to, const void* from, std::size_t bytes) override {
    accelerator::copy(to, from, bytes);
  }

  std::uint64_t record_event(c10::DeviceIndex) override { return record(); }
  bool is_done(c10::DeviceIndex, std::uint64_t event) override { return query(event); }
  void wait_for(c10::DeviceIndex, std::uint64_t event) override { wait(event); }
};

}  // namespace accelerator
