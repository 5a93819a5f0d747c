// The tensor of device `lazy`.
//
// Sizes and strides are its own, as any tensor's; bytes are its LazyStorage's. `inner` is a tensor
// of the backend over the resident buffer with the same metadata: made when an operation runs at
// the call, kept while the metadata stays. Never shared between two lazy tensors, because an
// operation that changes metadata in place (t_) changes it on the inner tensor too.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <typeinfo>

#include "device/lazy_storage.h"

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
  bool is_inner(const at::Tensor& tensor) const { return inner_.is_same(tensor); }
  void set_inner(at::Tensor tensor) { inner_ = std::move(tensor); }
  // Takes over sizes, strides, offset and storage size that an operation gave the inner tensor;
  // true when anything changed.
  bool take_over_inner_metadata();
  // Before an operation that gives every element of this tensor a new value: a poisoned storage
  // that has no other elements becomes usable again; true when this one did.
  bool heal_if_overwritten();
  // Takes over sizes, strides and offset of a plain tensor, with all that it has computed of them.
  void take_geometry(const c10::TensorImpl& plain);
  // Gives this tensor new metadata without running anything.
  void rebind(const OutputMetadata& metadata);

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
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy_and_detach(Version&& version,
                                                 bool allow_metadata_change) const;
  const char* tensorimpl_type_name() const override { return "LazyTensorImpl"; }

  at::Tensor inner_;
};

// The impl of a lazy tensor; null for every other tensor. Fake tensors and other wrappers carry the
// Lazy key too, so the key alone tells nothing.
inline LazyTensorImpl* lazy_impl(const at::TensorBase& tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return typeid(*impl) == typeid(LazyTensorImpl) ? static_cast<LazyTensorImpl*>(impl) : nullptr;
}

inline uint8_t tensor_flags(const c10::TensorImpl& impl) {
  const c10::DispatchKeySet keys = impl.key_set();
  uint8_t flags = 0;
  if (keys.has(c10::DispatchKey::Conjugate)) flags |= kConj;
  if (keys.has(c10::DispatchKey::Negative)) flags |= kNeg;
  if (impl.is_wrapped_number()) flags |= kWrappedNumber;
  return flags;
}

// A lazy tensor over a tensor of the backend, on a storage of its own or on that of a view's base.
at::Tensor wrap_inner(at::Tensor inner);
at::Tensor wrap_inner_view(at::Tensor inner, const c10::Storage& storage,
                           c10::DispatchKeySet base_keys);

}  // namespace torch_lazy
