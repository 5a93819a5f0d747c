// What backends whose tensors live in the CPU's memory have in common: one device, memory from the
// caching allocator, work that is done when the call that asked for it returns.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace torch_lazy {

class HostBackend : public Backend {
 public:
  // `description` is the device's name in its properties.
  HostBackend(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {}

  std::string name() const final { return name_; }
  int device_count() const final { return 1; }
  DeviceProperties properties(c10::DeviceIndex index) const final;
  bool has_eager_kernels() const final { return true; }

  c10::Allocator* allocator(c10::DeviceIndex index) final;
  void copy(const at::Tensor& source, at::Tensor& destination, bool non_blocking,
            c10::Stream stream) final;
  c10::Stream current_stream(c10::DeviceIndex index) final;
  std::unique_ptr<Event> record_event(c10::Stream stream) final;
  void synchronize(c10::DeviceIndex) final {}

  bool supports(c10::ArrayRef<const torch::jit::Node*>) const final { return true; }

 private:
  const std::string name_, description_;
};

}  // namespace torch_lazy
