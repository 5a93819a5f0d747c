#include "device/exchange.h"

#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>

#include "device/lazy_tensor.h"
#include "device/members.h"
#include "offload/mirrored_storage.h"
#include "offload/runtime_device.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

LazyStorage& checked_storage(const c10::Storage& storage) {
  TORCH_CHECK_TYPE(has_buffer(storage), "expected a storage of device lazy but got one on ",
                   storage.device());
  return *static_cast<LazyStorage*>(storage.unsafeGetStorageImpl());
}

at::Tensor bytes_of(const c10::Storage& buffer) {
  at::Tensor bytes = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(buffer), c10::DispatchKeySet(execution_device().key),
      caffe2::TypeMeta::Make<uint8_t>());
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous({int64_t(buffer.nbytes())});
  return bytes;
}

// Runs what is pending on a storage, which is resident then.
void finish(StorageState& state) {
  Recorder& recorder = Recorder::current();
  if (recorder.binds(state)) recorder.sync({FlushReason::kExport});
  recorder.resolve({}, state);
  // Of a window that failed meanwhile.
  if (state.error) std::rethrow_exception(*state.error);
}

// Others would write what a copy-on-write clone shares: it is copied now.
void own(const c10::Storage& buffer) {
  buffer.mutable_data();
}

}  // namespace

bool has_buffer(const c10::Storage& storage) {
  c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  return typeid(impl) == typeid(LazyStorage);
}

c10::Storage storage_buffer(const c10::Storage& storage, bool shared) {
  StorageState& state = checked_storage(storage).state;
  // First: the thread whose tensor it is may go on recording meanwhile.
  if (shared) state.exported = true;
  finish(state);
  if (shared) own(state.buffer);
  return state.buffer;
}

c10::Storage storage_over(const c10::Storage& buffer) {
  TORCH_CHECK_TYPE(buffer.device().type() == execution_device().type, "expected a storage on the ",
                   execution_device().name(), " but got one on ", buffer.device());
  c10::Storage storage = make_lazy_storage(buffer);
  checked_storage(storage).state.exported = true;
  return storage;
}

c10::Storage new_storage(int64_t bytes) {
  TORCH_CHECK_VALUE(bytes >= 0, "a storage has no size of ", bytes, " bytes");
  const StepThreadState state;
  return make_lazy_storage(make_buffer(bytes, -1));
}

void resize_storage(const c10::Storage& storage, int64_t bytes) {
  TORCH_CHECK_VALUE(bytes >= 0, "a storage has no size of ", bytes, " bytes");
  LazyStorage& lazy = checked_storage(storage);
  finish(lazy.state);
  // Shared memory has none, which ATen takes for granted.
  TORCH_CHECK(lazy.state.buffer.allocator(),
              "cannot resize a storage on memory that came from outside or is shared with other "
              "processes: clone the tensor, and resize the storage of the copy");
  const StepThreadState state;
  if (MirroredStorage* const mirror = mirrored(lazy.state.buffer)) {
    mirror->resize(size_t(bytes));
    return lazy.set_nbytes(size_t(bytes));
  }
  const at::Tensor before = bytes_of(lazy.state.buffer);
  const at::Tensor after = at::empty({bytes}, before.options());
  const int64_t kept = std::min(bytes, before.numel());
  after.narrow(0, 0, kept).copy_(before.narrow(0, 0, kept));
  // The buffer's identity stays.
  c10::StorageImpl& buffer = *lazy.state.buffer.unsafeGetStorageImpl();
  buffer.set_data_ptr(after.storage().set_data_ptr({}));
  buffer.set_nbytes(size_t(bytes));
  lazy.set_nbytes(size_t(bytes));
}

at::Tensor export_inner(const at::Tensor& lazy) {
  TORCH_CHECK(lazy.has_storage(), "Cannot access data pointer of Tensor that doesn't have storage");
  const bool assembled = lazy.device().type() == c10::DeviceType::Lazy && has_members(lazy);
  const at::Tensor plain = assembled ? members_of(lazy)[0] : lazy;
  LazyTensorImpl* impl = lazy_impl(plain);
  TORCH_CHECK_TYPE(impl, "expected a tensor on device lazy but got one on ", lazy.device());
  Recorder& recorder = Recorder::current();
  recorder.resolve(impl->binding, impl->state());
  recorder.sync({FlushReason::kExport});
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_offloaded(), "device ", execution_device().name(),
      " has no kernels of PyTorch's, and operators would not see what other "
      "libraries do to its memory: exchange x.cpu()");
  impl->state().exported = true;
  const StepThreadState state;
  own(impl->inner().storage());
  // An alias: the inner tensor itself must not be reached by others, who could change its metadata.
  return at::alias(impl->inner());
}

at::Tensor readable_inner(const at::Tensor& lazy) {
  LazyTensorImpl* impl = lazy_impl(lazy);
  if (!impl || !execution_device().is_cpu()) return {};
  Recorder& recorder = Recorder::current();
  recorder.resolve(impl->binding, impl->state(), [] { return false; });
  recorder.sync({FlushReason::kCopyToCpu});
  return impl->alias_of_inner();
}

at::Tensor import_inner(const at::Tensor& inner) {
  TORCH_CHECK_TYPE(
      inner.device().type() == execution_device().type && inner.layout() == c10::kStrided,
      "expected a strided tensor on the ", execution_device().name(), " but got a ", inner.layout(),
      " tensor on ", inner.device());
  const StepThreadState state;
  at::Tensor lazy = wrap_inner(at::alias(inner));
  lazy_impl(lazy)->state().exported = true;
  return lazy;
}

}  // namespace torch_lazy
