// Operators that make memory without values. No program may rely on what is in it, so they run at
// the call, untraced.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_ops.h>
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

}  // namespace

void register_empty_operators(torch::Library& library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
}

}  // namespace torch_lazy
