// Operators that make memory without values. No program may rely on what is in it, so they run at
// the call, untraced.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_ops.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/empty_strided_ops.h>

#include "device/call.h"
#include "device/register.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

std::optional<c10::Device> inner_device_or_none(std::optional<c10::Device> device) {
  return device ? std::optional(inner_device(*device)) : std::nullopt;
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> memory_format) {
  const auto run = [&] {
    const StepThreadState state;
    return at::_ops::empty_memory_format::redispatch(
        inner_keys(), size, dtype, layout, inner_device_or_none(device), pin_memory, memory_format);
  };
  return wrap_inner(run());
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const auto run = [&] {
    const StepThreadState state;
    return at::_ops::empty_strided::redispatch(inner_keys(), size, stride, dtype, layout,
                                               inner_device_or_none(device), pin_memory);
  };
  return wrap_inner(run());
}

// PyTorch takes this device for one without strides, and would make a contiguous tensor of one that
// is not dense. Elsewhere it keeps the order of the dimensions.
at::Tensor empty_like(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                      std::optional<at::Layout> layout, std::optional<at::Device> device,
                      std::optional<bool> pin_memory,
                      std::optional<at::MemoryFormat> memory_format) {
  const bool keeps_order =
      memory_format.value_or(at::MemoryFormat::Preserve) == at::MemoryFormat::Preserve &&
      layout.value_or(self.layout()) == at::kStrided && self.layout() == at::kStrided &&
      !self.is_non_overlapping_and_dense();
  if (!keeps_order)
    return at::native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return at::empty_strided(self.sizes(), at::infer_dense_strides(self.sizes(), self.strides()),
                           dtype.value_or(self.scalar_type()), layout,
                           device.value_or(self.device()), pin_memory);
}

}  // namespace

void register_empty_operators(torch::Library& library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("empty_like", empty_like);
}

}  // namespace torch_lazy
