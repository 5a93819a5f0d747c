// The tensor of device `lazy`.
//
// Sizes and strides are its own, as any tensor's; bytes are its LazyStorage's. `inner` is a tensor
// of the backend over the resident buffer with the same metadata: made when an operation runs at
// the call, kept while the metadata stays. Never shared between two lazy tensors, because an
// operation that changes metadata in place (t_) changes it on the inner tensor too.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <atomic>
#include <typeinfo>

#include "backend/execution_device.h"
#include "device/lazy_storage.h"
#include "ops/indices_within.h"
#include "runtime/geometry.h"

namespace torch_lazy {

class LazyTensorImpl final : public c10::TensorImpl {
 public:
  // A tensor with a storage of its own.
  LazyTensorImpl(c10::Storage&& storage, caffe2::TypeMeta dtype);
  // A view: takes over what autograd and inference mode keep in the base's key set.
  LazyTensorImpl(ImplType view, c10::Storage&& storage, c10::DispatchKeySet base_keys,
                 caffe2::TypeMeta dtype);

  static void* operator new(size_t) { return ObjectPool<LazyTensorImpl>::allocate(); }
  static void operator delete(void* impl) noexcept { ObjectPool<LazyTensorImpl>::release(impl); }

  LazyStorage& lazy_storage() const {
    return *static_cast<LazyStorage*>(storage_.unsafeGetStorageImpl());
  }
  StorageState& state() const { return lazy_storage().state; }

  // The backend's tensor. Runs the window first when the storage is pending; raises when poisoned.
  const at::Tensor& inner();
  // The same where the storage must be resident: never runs anything.
  const at::Tensor& resident_inner();
  // Another one, for a caller that gives it away for a while: PyTorch's own aliases ask modes.
  at::Tensor alias_of_inner();
  bool is_inner(const at::Tensor& tensor) const { return inner_.is_same(tensor); }
  void set_inner(at::Tensor tensor) { inner_ = std::move(tensor); }
  // Takes over sizes, strides, offset and storage size that an operation gave the inner tensor;
  // true when anything changed.
  bool take_over_inner_metadata();
  // Before an operation that gives every element of this tensor a new value: a poisoned storage
  // that has no other elements becomes usable again; true when this one did.
  bool heal_if_overwritten();
  // Sets sizes, strides and offset (in elements), with all that was computed of them.
  void take_geometry(const Geometry& geometry, int64_t offset) {
    take_geometry(geometry.sizes_and_strides, geometry.numel, geometry.contiguity, offset);
  }
  // Those of another tensor.
  void take_geometry(const c10::TensorImpl& strided) {
    take_geometry(sizes_and_strides_of(strided), strided.numel(), Contiguity(strided),
                  strided.storage_offset());
  }
  // Gives this tensor new metadata without running anything. `offset`: in bytes.
  void rebind(int64_t storage_bytes, const Geometry& geometry, int64_t offset);

  // For a tensor whose object PyTorch made, see stand_in.h. `like` has the storage of a lazy
  // tensor.
  static c10::intrusive_ptr<LazyTensorImpl> make_stand_in(const c10::TensorImpl& like);
  // Whether this stands in for the holder as it is now.
  bool follows(const c10::TensorImpl& holder) const {
    return holder_.load(std::memory_order_relaxed) == &holder &&
           storage_.is_alias_of(holder.unsafe_storage()) && key_set_ == keys_to_mirror(holder) &&
           sizes() == holder.sizes() && strides() == holder.strides() &&
           storage_offset_ == holder.storage_offset();
  }
  // Takes over the holder's metadata where they differ.
  void follow(c10::TensorImpl& holder);
  // The holder takes over this stand-in's; nothing for any other tensor.
  void tell_holder();
  // What programs hold: the tensor itself, or what it stands in for.
  c10::TensorImpl* held() {
    c10::TensorImpl* const holder = holder_.load(std::memory_order_relaxed);
    return holder ? holder : this;
  }
  bool is_stand_in() const { return holder_ != nullptr; }

  // What is known of the elements until autograd counts another version of this tensor or its
  // views. Who writes past that, by `.data`, meets a flush less, and an index out of range where
  // the window runs. Nothing is known of what was made in inference mode, which has no version.
  //
  // That the program has read its only element, and whether it had.
  void note_read() {
    if (!is_inference()) read_at_.store(version() + 1, std::memory_order_relaxed);
  }
  bool was_read() const { return read_at_.load(std::memory_order_relaxed) == version() + 1; }
  // That all of them lie in the range: programs use the same indices many times.
  void note_within(const IndexRange& range) {
    if (is_inference()) return;
    within_lowest_.store(range.lowest, std::memory_order_relaxed);
    within_limit_.store(range.limit, std::memory_order_relaxed);
    within_at_.store(version() + 1, std::memory_order_release);
  }
  bool is_within(const IndexRange& range) const {
    return within_at_.load(std::memory_order_acquire) == version() + 1 &&
           within_lowest_.load(std::memory_order_relaxed) >= range.lowest &&
           within_limit_.load(std::memory_order_relaxed) <= range.limit;
  }

  // This value's place in the open window.
  ValueBinding binding;

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter,
      bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) override;
  void release_resources() override;

 private:
  // Of the tensor that a stand-in is like: autograd's and inference mode's, conjugate and negative.
  // Not Python's, which belong to one object.
  static c10::DispatchKeySet keys_to_mirror(const c10::TensorImpl& like) {
    return like.key_set() - c10::python_ks;
  }
  void take_geometry(const c10::impl::SizesAndStrides& sizes_and_strides, int64_t numel,
                     const Contiguity& contiguity, int64_t offset);
  // Takes over all that a stand-in has of the tensor that it is like.
  void mirror(const c10::TensorImpl& like);

  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy_and_detach(Version&& version,
                                                 bool allow_metadata_change) const;
  const char* tensorimpl_type_name() const override { return "LazyTensorImpl"; }
  // As programs count; 0 where there is none.
  uint32_t version() const {
    const c10::TensorImpl* const holder = holder_.load(std::memory_order_relaxed);
    const c10::VariableVersion& counter = (holder ? holder : this)->version_counter();
    return counter.enabled() ? counter.current_version() : 0;
  }

  at::Tensor inner_;
  // Of a stand-in, which it owns. Threads that use one tensor write the same here.
  std::atomic<c10::TensorImpl*> holder_{nullptr};
  std::atomic<uint32_t> read_at_{0}, within_at_{0};  // the version, and 1; 0: never
  std::atomic<int64_t> within_lowest_{0}, within_limit_{0};
};

// What stands in for an object that PyTorch made (stand_in.h); null where it is no lazy tensor's.
LazyTensorImpl* stand_in_of(c10::TensorImpl& holder);

// The impl of a lazy tensor; null for every other tensor. Fake tensors and other wrappers carry the
// Lazy key too, and a lazy tensor's object may hold a CPU tensor since `lazy.data = cpu`, so that
// neither class nor key tells alone.
inline LazyTensorImpl* lazy_impl(const at::TensorBase& tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!impl->key_set().has_backend(c10::BackendComponent::LazyBit)) return nullptr;
  if (typeid(*impl) == typeid(LazyTensorImpl)) [[likely]]
    return static_cast<LazyTensorImpl*>(impl);
  return stand_in_of(*impl);
}
inline bool is_lazy(const at::TensorBase& tensor) {
  return lazy_impl(tensor) != nullptr;
}

inline uint8_t tensor_flags(const c10::TensorImpl& impl) {
  const c10::DispatchKeySet keys = impl.key_set();
  uint8_t flags = 0;
  if (keys.has(c10::DispatchKey::Conjugate)) flags |= kConj;
  if (keys.has(c10::DispatchKey::Negative)) flags |= kNeg;
  if (impl.is_wrapped_number()) flags |= kWrappedNumber;
  return flags;
}

// Memory of the backend behind lazy:`index`, -1 being the current one.
c10::Storage make_buffer(int64_t bytes, c10::DeviceIndex index);

// A lazy tensor over a tensor of the backend, which it takes, on a storage of its own or on that of
// a view's base.
at::Tensor wrap_inner(at::Tensor&& inner);
at::Tensor wrap_inner_view(at::Tensor&& inner, const c10::Storage& storage,
                           c10::DispatchKeySet base_keys);

}  // namespace torch_lazy
