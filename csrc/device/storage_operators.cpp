// Operators on storages: a tensor becomes a view of another one, or one of memory that both share.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_has_compatible_shallow_copy_type_native.h>
#include <ATen/ops/_lazy_clone_ops.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set_ops.h>
#include <c10/core/impl/COW.h>

#include "base/fork.h"
#include "base/immortal_library.h"
#include "device/dispatched_operation.h"
#include "device/register.h"
#include "device/stand_in.h"
#include "device/unboxed.h"
#include "offload/runtime_device.h"

namespace torch_lazy {
namespace {

LazyTensorImpl& checked_impl(const char* name, const at::Tensor& tensor) {
  LazyTensorImpl* impl = lazy_impl(tensor);
  TORCH_CHECK(impl, name, ": expected a tensor on device lazy but got one on ", tensor.device());
  return *impl;
}

at::Tensor& set_source_tensor(at::Tensor& self, const at::Tensor& source) {
  if (!lazy_impl(self) && !lazy_impl(source)) {  // what Python's subclasses show of themselves
    c10::TensorImpl& shown = *self.unsafeGetTensorImpl();
    shown.set_storage_keep_dtype(source.storage());
    shown.set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
    return self;
  }
  LazyTensorImpl& to = checked_impl("set_", self);
  const LazyTensorImpl& from = checked_impl("set_", source);
  TORCH_CHECK(from.dtype() == to.dtype(), "Could not set tensor of type ", from.dtype(),
              " to a tensor of type ", to.dtype());
  to.set_inner({});
  to.set_storage_keep_dtype(source.storage());
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  to.binding = from.binding;
  to.tell_holder();
  return self;
}

at::Tensor& set_source_storage_with_offset(at::Tensor& self, c10::Storage source,
                                           c10::SymInt offset, c10::SymIntArrayRef size,
                                           c10::SymIntArrayRef stride) {
  LazyTensorImpl& to = checked_impl("set_", self);
  TORCH_CHECK(source.device().type() == c10::DeviceType::Lazy,
              "set_: expected a storage on device lazy but got one on ", source.device(),
              ": move it with torch.Tensor.to(\"lazy\") first");
  TORCH_CHECK(typeid(*source.unsafeGetStorageImpl()) == typeid(LazyStorage),
              "set_: the storage was not made by device lazy");
  auto& storage = *static_cast<LazyStorage*>(source.unsafeGetStorageImpl());
  // The backend's own set_ checks the arguments and grows the storage as eager does.
  Recorder& recorder = Recorder::current();
  if (recorder.binds(storage.state)) recorder.sync({FlushReason::kSetStorage});
  recorder.resolve({}, storage.state);
  if (storage.state.error) std::rethrow_exception(*storage.state.error);
  const StepThreadState state;
  at::Tensor inner = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage.state.buffer),
                                                              inner_keys(), to.dtype());
  // Sizes without strides keep the old strides where the sizes stay the same.
  inner.unsafeGetTensorImpl()->set_sizes_and_strides(to.sizes(), to.strides(), to.storage_offset());
  at::_ops::set__source_Storage_storage_offset::redispatch(
      inner_keys(), inner, storage.state.buffer, offset, size, stride);
  if (source.nbytes() != storage.state.buffer.nbytes())
    source.set_nbytes(storage.state.buffer.nbytes());
  to.set_storage_keep_dtype(std::move(source));
  to.set_sizes_and_strides(inner.sizes(), inner.strides(), inner.storage_offset());
  to.set_inner(std::move(inner));
  to.binding = {};
  to.tell_holder();
  return self;
}

at::Tensor& set_source_storage(at::Tensor& self, c10::Storage source) {
  const auto elements = int64_t(source.nbytes() / self.dtype().itemsize());
  const std::array<c10::SymInt, 1> size{elements}, stride{1};
  return set_source_storage_with_offset(self, std::move(source), 0, size, stride);
}

at::Tensor& set_empty(at::Tensor& self) {
  LazyTensorImpl& to = checked_impl("set_", self);
  const StepThreadState state;
  at::Tensor inner =
      at::empty({0}, at::TensorOptions(self.scalar_type()).device(inner_device(to.device())));
  to.set_storage_keep_dtype(make_lazy_storage(inner.storage()));
  to.set_sizes_and_strides(inner.sizes(), inner.strides(), 0);
  to.set_inner(std::move(inner));
  to.binding = {};
  to.tell_holder();
  return self;
}

// Whether PyTorch lets storages share this memory until one of them is written. It does where it
// would know how to copy it.
bool can_be_shared_until_written(const c10::Storage& buffer) {
  const c10::StorageImpl& impl = *buffer.unsafeGetStorageImpl();
  return buffer.allocator() && !is_offloaded() &&
         (c10::impl::cow::has_simple_data_ptr(impl) ||
          c10::impl::cow::is_cow_data_ptr(impl.data_ptr()));
}

// Undefined where it cannot be shared. Threads may clone one tensor at a time, and the first clone
// changes the storage that it is of.
at::Tensor shared_until_written(const at::Tensor& inner) {
  static ForkSafeMutex& mutex = *new ForkSafeMutex(LockOrder::kLeaf);
  const std::lock_guard<std::mutex> lock(mutex);
  if (!can_be_shared_until_written(inner.storage())) return {};
  return at::_ops::_lazy_clone::redispatch(inner_keys(), inner);
}

// Runs at the call: the clone has the storage's memory as it is now, and whoever writes either of
// them, an operator or a window's kernel, makes a copy first. Memory that others write is copied.
at::Tensor lazy_clone(const at::Tensor& self) {
  static const OperatorInfo& op = operator_info("aten::_lazy_clone", "");
  LazyTensorImpl* const from = lazy_impl(self);
  if (!from || from->state().exported) return at::clone(self);
  Recorder& recorder = Recorder::current();
  recorder.resolve(from->binding, from->state(), [] { return false; });
  if (recorder.binds(from->state())) recorder.sync(Flush::by(op));
  at::Tensor clone;
  {
    const at::Tensor& inner = from->inner();
    const StepThreadState state;
    const DispatchedOperation dispatched(op);
    clone = shared_until_written(inner);
  }
  return clone.defined() ? wrap_inner(std::move(clone)) : at::clone(self);
}

// Whether `self.data = from` may keep self's object: as between the CPU and CUDA, it may where both
// have dense memory of their own. PyTorch's answer counts the kinds of device that it knows.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto is_lazy = [](const at::Tensor& tensor) { return lazy_impl(tensor) != nullptr; };
  const auto is_plain = [](const at::Tensor& tensor) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    const bool known_device =
        tensor.is_cpu() || tensor.is_cuda() || tensor.device().type() == execution_device().type;
    return known_device && tensor.layout() == c10::kStrided &&
           (typeid(impl) == typeid(c10::TensorImpl) || typeid(impl) == typeid(LazyTensorImpl));
  };
  if (!(is_lazy(self) || is_plain(self)) || !(is_lazy(from) || is_plain(from)))
    return at::native::_has_compatible_shallow_copy_type(self, from);
  prepare_stand_in(from);
  return true;
}

}  // namespace

void register_storage_operators(torch::Library& library) {
  library.impl("set_.source_Tensor", set_source_tensor);
  library.impl("set_.source_Storage", set_source_storage);
  library.impl("set_.source_Storage_storage_offset", set_source_storage_with_offset);
  library.impl("set_", set_empty);
  library.impl("_lazy_clone", lazy_clone);
  // For autograd too, whose fallback would ask a view for its gradient function: where that cannot
  // be made any more, data may be given to it all the same.
  library.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  immortal_library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradLazy)
      .impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}

}  // namespace torch_lazy
