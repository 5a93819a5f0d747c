#include "device/lazy_tensor.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include "backend/execution_device.h"
#include "base/fork.h"
#include "device/detached_by_mode.h"

namespace torch_lazy {
namespace {

// A tensor of the backend over a buffer, with the metadata of a lazy tensor.
at::Tensor make_inner(const c10::Storage& buffer, const c10::TensorImpl& like) {
  at::Tensor inner = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(buffer), c10::DispatchKeySet(execution_device().key), like.dtype());
  c10::TensorImpl& impl = *inner.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  const uint8_t flags = tensor_flags(like);
  if (flags & kConj) impl._set_conj(true);
  if (flags & kNeg) impl._set_neg(true);
  if (flags & kWrappedNumber) impl.set_wrapped_number(true);
  return inner;
}

// What the constructor for new tensors works out for each.
c10::DispatchKeySet keys_of_new_tensor() {
  constexpr auto backend = c10::BackendComponent::LazyBit;
  static const c10::DispatchKeySet in_inference = c10::DispatchKeySet(c10::DispatchKey::Lazy) |
                                                  c10::getAutocastRelatedKeySetFromBackend(backend);
  static const c10::DispatchKeySet usual =
      in_inference | c10::getAutogradRelatedKeySetFromBackend(backend);
  return c10::InferenceMode::is_enabled() ? in_inference : usual;
}

void take_over(const at::Tensor& lazy, at::Tensor&& inner) {
  auto& impl = *static_cast<LazyTensorImpl*>(lazy.unsafeGetTensorImpl());
  const c10::TensorImpl& source = *inner.unsafeGetTensorImpl();
  impl.take_geometry(source);
  constexpr c10::DispatchKeySet kBits{c10::DispatchKey::Conjugate, c10::DispatchKey::Negative};
  if ((source.key_set() | impl.key_set()).has_any(kBits)) [[unlikely]] {
    impl._set_conj(source.key_set().has(c10::DispatchKey::Conjugate));
    impl._set_neg(source.key_set().has(c10::DispatchKey::Negative));
  }
  impl.set_inner(std::move(inner));
}

}  // namespace

LazyTensorImpl::LazyTensorImpl(c10::Storage&& storage, caffe2::TypeMeta dtype)
    : TensorImpl(VIEW, std::move(storage), keys_of_new_tensor(), dtype) {}

LazyTensorImpl::LazyTensorImpl(ImplType view, c10::Storage&& storage, c10::DispatchKeySet base_keys,
                               caffe2::TypeMeta dtype)
    : TensorImpl(view, std::move(storage), base_keys, dtype) {}

const at::Tensor& LazyTensorImpl::inner() {
  StorageState& state = this->state();
  if (!state.resident()) {
    Recorder& recorder = Recorder::current();
    recorder.resolve(binding, state);
    if (!state.resident()) recorder.sync({FlushReason::kStorageNeeded});
    if (state.error) std::rethrow_exception(*state.error);
  } else if (state.error) {
    std::rethrow_exception(*state.error);
  }
  return resident_inner();
}

const at::Tensor& LazyTensorImpl::resident_inner() {
  StorageState& state = this->state();
  TORCH_INTERNAL_ASSERT(state.resident(), "a lazy storage has neither memory nor a window");
  if (!inner_.defined()) [[unlikely]] {
    // Threads may read the tensor for the first time at the same moment.
    static auto* const mutex = new ForkSafeMutex(LockOrder::kLeaf);
    at::Tensor made = make_inner(state.buffer, *this);
    const std::lock_guard lock(*mutex);
    if (!inner_.defined()) inner_ = std::move(made);
  } else if (tensor_flags(*inner_.unsafeGetTensorImpl()) != tensor_flags(*this)) {
    // _conj() flips the bit of the outer tensor after its alias was made.
    inner_ = make_inner(state.buffer, *this);
  }
  return inner_;
}

at::Tensor LazyTensorImpl::alias_of_inner() {
  inner();
  return make_inner(state().buffer, *this);
}

bool LazyTensorImpl::take_over_inner_metadata() {
  if (!inner_.defined()) return false;
  const c10::TensorImpl& inner = *inner_.unsafeGetTensorImpl();
  StorageState& state = this->state();
  if (inner.has_storage() && !inner.storage().is_alias_of(state.buffer)) {
    storage_ = make_lazy_storage(inner.storage());
  } else {
    LazyStorage& storage = lazy_storage();
    if (storage.nbytes() != state.buffer.nbytes()) storage.set_nbytes(state.buffer.nbytes());
  }
  const bool changed = inner.sizes() != sizes() || inner.strides() != strides() ||
                       inner.storage_offset() != storage_offset();
  if (changed) {
    try {
      set_sizes_and_strides(inner.sizes(), inner.strides(), inner.storage_offset());
    } catch (const c10::Error&) {
      // An operation that raised has left sizes that no number of elements can be of. Eager's
      // tensor has them too, and the operation's own error says so.
    }
  }
  tell_holder();
  return changed;
}

bool LazyTensorImpl::heal_if_overwritten() {
  LazyStorage& storage = lazy_storage();
  const bool whole =
      is_non_overlapping_and_dense() && size_t(numel()) * itemsize() == storage.nbytes();
  if (!whole) return false;
  StorageState& state = storage.state;
  if (!state.resident())
    state.buffer = make_buffer(int64_t(storage.nbytes()), storage.device().index());
  state.error.reset();
  return true;
}

void LazyTensorImpl::take_geometry(const c10::impl::SizesAndStrides& sizes_and_strides,
                                   int64_t numel, const Contiguity& contiguity, int64_t offset) {
  sizes_and_strides_ = sizes_and_strides;
  storage_offset_ = offset;
  numel_ = numel;
  is_contiguous_ = contiguity.contiguous;
  is_channels_last_ = contiguity.channels_last;
  is_channels_last_contiguous_ = contiguity.channels_last_contiguous;
  is_channels_last_3d_ = contiguity.channels_last_3d;
  is_channels_last_3d_contiguous_ = contiguity.channels_last_3d_contiguous;
  is_non_overlapping_and_dense_ = contiguity.non_overlapping_and_dense;
}

void LazyTensorImpl::rebind(int64_t storage_bytes, const Geometry& geometry, int64_t offset) {
  inner_ = at::Tensor();
  lazy_storage().set_nbytes(size_t(storage_bytes));
  take_geometry(geometry, offset / int64_t(itemsize()));
  tell_holder();
}

c10::intrusive_ptr<LazyTensorImpl> LazyTensorImpl::make_stand_in(const c10::TensorImpl& like) {
  auto made =
      c10::make_intrusive<LazyTensorImpl>(c10::Storage(like.unsafe_storage()), like.dtype());
  made->mirror(like);
  if (typeid(like) == typeid(LazyTensorImpl))
    made->binding = static_cast<const LazyTensorImpl&>(like).binding;
  return made;
}

void LazyTensorImpl::mirror(const c10::TensorImpl& like) {
  storage_ = like.unsafe_storage();
  key_set_ = keys_to_mirror(like);
  take_geometry(like);
}

void LazyTensorImpl::follow(c10::TensorImpl& holder) {
  holder_.store(&holder, std::memory_order_relaxed);
  if (follows(holder)) return;
  mirror(holder);
  inner_ = at::Tensor();
  binding = {};
}

void LazyTensorImpl::tell_holder() {
  c10::TensorImpl* const holder = holder_.load(std::memory_order_relaxed);
  if (!holder) return;
  if (!holder->unsafe_storage().is_alias_of(storage_)) holder->set_storage_keep_dtype(storage_);
  holder->set_sizes_and_strides(sizes(), strides(), storage_offset());
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> LazyTensorImpl::copy_and_detach(
    Version&& version, bool allow_metadata_change) const {
  if (auto seen = detached_by_mode(*this, version, allow_metadata_change)) return seen;
  if (!key_set().has_backend(c10::BackendComponent::LazyBit))
    return TensorImpl::shallow_copy_and_detach(std::forward<Version>(version),
                                               allow_metadata_change);
  auto copy = c10::make_intrusive<LazyTensorImpl>(c10::Storage(storage_), data_type_);
  copy_tensor_metadata(this, copy.get(), std::forward<Version>(version), allow_metadata_change);
  if (copy->get_backend_meta()) copy->set_backend_meta(nullptr);
  copy->binding = binding;
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl> LazyTensorImpl::shallow_copy_and_detach(
    const c10::VariableVersion& version_counter, bool allow_tensor_metadata_change) const {
  return copy_and_detach(version_counter, allow_tensor_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> LazyTensorImpl::shallow_copy_and_detach(
    c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const {
  return copy_and_detach(std::move(version_counter), allow_tensor_metadata_change);
}

// The source may be a tensor of another device: this object is that device's then.
void LazyTensorImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) {
  copy_tensor_metadata(impl.get(), this, version_counter(), allow_tensor_metadata_change());
  if (get_backend_meta()) set_backend_meta(nullptr);
  const LazyTensorImpl* const source = lazy_impl(at::Tensor(impl));
  binding = source ? source->binding : ValueBinding{};
  inner_ = at::Tensor();
}

void LazyTensorImpl::release_resources() {
  inner_ = at::Tensor();
  TensorImpl::release_resources();
}

c10::Storage make_buffer(int64_t bytes, c10::DeviceIndex index) {
  const c10::Device device = execution_device().device(index);
  return at::empty({bytes}, at::TensorOptions(c10::kByte).device(device)).storage();
}

at::Tensor wrap_inner(at::Tensor&& inner) {
  at::Tensor lazy =
      at::detail::make_tensor<LazyTensorImpl>(make_lazy_storage(inner.storage()), inner.dtype());
  take_over(lazy, std::move(inner));
  return lazy;
}

at::Tensor wrap_inner_view(at::Tensor&& inner, const c10::Storage& storage,
                           c10::DispatchKeySet base_keys) {
  at::Tensor lazy = at::detail::make_tensor<LazyTensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(storage), base_keys, inner.dtype());
  take_over(lazy, std::move(inner));
  return lazy;
}

}  // namespace torch_lazy
