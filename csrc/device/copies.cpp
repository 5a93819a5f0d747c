// Copies in every direction. What comes from another device is read at the call, because its owner
// may change it afterwards; what goes to another device is a sync point.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_copy_from_and_resize_ops.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/_to_copy_ops.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy_ops.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>

#include "backend/late_failure.h"
#include "device/boxed.h"
#include "device/dispatched_operation.h"
#include "device/register.h"
#include "device/unboxed.h"
#include "trace/plain_copy.h"

namespace torch_lazy {
namespace {

// Of a tensor that is read, or written where it is a copy's target.
const at::Tensor& synchronized_inner(const at::Tensor& tensor, Flush flush, bool writes = false) {
  LazyTensorImpl* impl = lazy_impl(tensor);
  if (!impl) return tensor;
  Recorder& recorder = Recorder::current();
  recorder.resolve(impl->binding, impl->state(), [writes] { return writes; });
  recorder.sync(flush);
  return impl->inner();
}

// The only element of a tensor whose memory the CPU can read as it is; nothing for any other.
std::optional<at::Scalar> element_in_memory(const LazyTensorImpl& tensor) {
  const StorageState& state = tensor.state();
  if (!state.resident() || state.error || !state.buffer.device().is_cpu() || tensor.numel() != 1 ||
      (tensor_flags(tensor) & (kConj | kNeg)))
    return std::nullopt;
  const size_t offset = size_t(tensor.storage_offset()) * tensor.itemsize();
  if (offset + tensor.itemsize() > state.buffer.nbytes()) return std::nullopt;
  const auto* const element = static_cast<const char*>(state.buffer.data()) + offset;
  switch (c10::typeMetaToScalarType(tensor.dtype())) {
#define TORCH_LAZY_ELEMENT(type, name) \
  case at::ScalarType::name:           \
    return at::Scalar(*reinterpret_cast<const type*>(element));
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, TORCH_LAZY_ELEMENT)
#undef TORCH_LAZY_ELEMENT
    default:
      return std::nullopt;
  }
}

// What _to_copy makes on the CPU of a tensor that can be copied plainly; undefined for any other.
at::Tensor plain_cpu_copy(const at::Tensor& inner, std::optional<at::ScalarType> dtype,
                          std::optional<at::Layout> layout, std::optional<bool> pin_memory,
                          std::optional<at::MemoryFormat> memory_format) {
  const bool is_clone =
      dtype.value_or(inner.scalar_type()) == inner.scalar_type() && !pin_memory.value_or(false) &&
      layout.value_or(at::kStrided) == at::kStrided &&
      memory_format.value_or(at::MemoryFormat::Preserve) == at::MemoryFormat::Preserve;
  return is_clone ? plain_clone(inner) : at::Tensor();
}

at::Tensor to_copy(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                   std::optional<at::Layout> layout, std::optional<at::Device> device,
                   std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<at::MemoryFormat> memory_format) {
  static const OperatorInfo& op = operator_info("aten::_to_copy", "");
  const bool to_lazy = !device || device->type() == c10::DeviceType::Lazy;
  const c10::Device target = inner_device(device.value_or(self.device()));
  LazyTensorImpl* const from = lazy_impl(self);
  const bool between_devices = from && to_lazy && target != inner_device(self.device());
  if (to_lazy && (between_devices || self.device().type() != c10::DeviceType::Lazy)) {
    const at::Tensor& source = synchronized_inner(self, {FlushReason::kCopyToCpu});
    at::Tensor copy;
    {
      const StepThreadState state;
      const DispatchedOperation dispatched(op);
      if (target.is_cpu()) copy = plain_cpu_copy(source, dtype, layout, pin_memory, memory_format);
      if (!copy.defined())
        copy = at::_ops::_to_copy::redispatch(inner_keys(), source, dtype, layout, target,
                                              std::nullopt, non_blocking, memory_format);
    }
    return wrap_inner(std::move(copy));  // which inference mode concerns
  }
  if (to_lazy || !from)
    return Unboxed<at::_ops::_to_copy>::kernel(self, dtype, layout, device, pin_memory,
                                               non_blocking, memory_format);
  const at::Tensor& inner = synchronized_inner(self, {FlushReason::kCopyToCpu});
  const bool is_inference = c10::InferenceMode::is_enabled();
  const StepThreadState state;
  const DispatchedOperation dispatched(op);
  const AllocateForLazy allocate(false);  // the result is no lazy tensor
  std::optional<c10::InferenceMode> inference;
  if (is_inference) inference.emplace();
  if (device->is_cpu()) {
    at::Tensor copy = plain_cpu_copy(inner, dtype, layout, pin_memory, memory_format);
    if (copy.defined()) return copy;
  }
  at::Tensor copy = at::_ops::_to_copy::redispatch(inner_keys(), inner, dtype, layout, target,
                                                   pin_memory, non_blocking, memory_format);
  if (!non_blocking) raise_found_failures();
  return copy;
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  using Kernel = Unboxed<at::_ops::copy_>;
  static const OperatorInfo& op = operator_info("aten::copy_", "");
  LazyTensorImpl* to = lazy_impl(self);
  LazyTensorImpl* from = lazy_impl(source);
  const bool between_devices = to && from && self.device() != source.device();
  if (to && !from && source.device().type() != c10::DeviceType::Lazy) {
    Recorder& recorder = Recorder::current();
    if (to->state().error) return Kernel::kernel(self, source, non_blocking);
    recorder.resolve(to->binding, to->state());
    // The window does not know the destination: it can be filled before the window runs.
    if (!recorder.binds(to->state())) {
      const StepThreadState state;
      const DispatchedOperation dispatched(op);
      const at::Tensor& inner = to->inner();
      if (inner.is_cpu() && is_plain_cpu(source) &&
          is_plain_copy(*source.unsafeGetTensorImpl(), *to))
        copy_plainly(source, inner.mutable_data_ptr());
      else
        inner.copy_(source, non_blocking);
      return self;
    }
    // It does. A window cannot wait for the host's memory as a stream does, so the copy to the
    // device is made now, and the window copies there. A number goes with a kernel's arguments.
    if (!execution_device().is_cpu() && source.is_cpu() && source.dim() > 0) {
      const at::Tensor there = to_copy(source, std::nullopt, std::nullopt, self.device(),
                                       std::nullopt, non_blocking, std::nullopt);
      return Kernel::kernel(self, there, non_blocking);
    }
  } else if (from && (!to || between_devices)) {
    const at::Tensor& inner = synchronized_inner(source, {FlushReason::kCopyToCpu});
    const at::Tensor target =
        to ? synchronized_inner(self, {FlushReason::kCopyToCpu}, /*writes=*/true) : self;
    const StepThreadState state;
    const DispatchedOperation dispatched(op);
    target.copy_(inner, non_blocking);
    if (!non_blocking) raise_found_failures();
    return self;
  }
  return Kernel::kernel(self, source, non_blocking);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  if (!lazy_impl(self))  // a fake tensor: its kernel says that it has no value
    return at::_ops::_local_scalar_dense::redispatch(c10::DispatchKeySet(c10::DispatchKey::Meta),
                                                     self);
  static const OperatorInfo& op = operator_info("aten::_local_scalar_dense", "");
  LazyTensorImpl& lazy = *lazy_impl(self);
  Recorder& recorder = Recorder::current();
  recorder.resolve(lazy.binding, lazy.state(), [] { return false; });
  // Where a value is read, a window ends: what comes next may depend on it. When it is read again,
  // as k in boxes[k, 0] is after k.item(), the program knew it already.
  if (lazy.was_read() && !recorder.defers_write(lazy.state()))
    if (const auto element = element_in_memory(lazy)) return *element;
  recorder.sync(Flush::by(op));
  lazy.note_read();
  if (const auto element = element_in_memory(lazy)) return *element;
  const at::Tensor& inner = lazy.inner();
  const StepThreadState state;
  const DispatchedOperation dispatched(op);
  at::Scalar value = at::_ops::_local_scalar_dense::redispatch(inner_keys(), inner);
  raise_found_failures();
  return value;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& destination, bool non_blocking) {
  at::Tensor to = destination;
  copy_(to, self, non_blocking);
  return destination;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& destination) {
  at::Tensor to = destination;
  to.resize_(self.sizes());
  copy_(to, self, false);
  return destination;
}

// Between the CPU and the device one by one, as CUDA does it.
void foreach_copy_(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  std::vector<at::Tensor> targets = arguments[0].toTensorVector();
  const std::vector<at::Tensor> sources = arguments[1].toTensorVector();
  const bool non_blocking = arguments[2].toBool();
  const bool on_one_device = std::ranges::equal(
      targets, sources,
      [](const auto& to, const auto& from) { return is_lazy(to) == is_lazy(from); });
  if (targets.size() != sources.size() || on_one_device) return boxed_kernel(op, keys, stack);
  for (size_t i = 0; i < targets.size(); ++i)
    at::_ops::copy_::call(targets[i], sources[i], non_blocking);
  torch::jit::drop(*stack, 3);
}

}  // namespace

void register_copies(torch::Library& library) {
  library.impl("copy_", copy_);
  library.impl("_to_copy", to_copy);
  library.impl("_foreach_copy_", torch::CppFunction::makeFromBoxedFunction<&foreach_copy_>());
  library.impl("_local_scalar_dense", local_scalar_dense);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
}

}  // namespace torch_lazy
