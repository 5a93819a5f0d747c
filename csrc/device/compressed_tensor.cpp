#include "device/compressed_tensor.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

#include "device/detached_by_mode.h"

namespace torch_lazy {
namespace {

// PyTorch's constructor makes empty members, of which no mode and no transform is to hear.
c10::intrusive_ptr<CompressedTensorImpl> make(c10::Layout layout, caffe2::TypeMeta dtype,
                                              c10::Device device) {
  constexpr c10::DispatchKeySet kIncluded(c10::DispatchKey::BackendSelect);
  constexpr c10::DispatchKeySet kExcluded = c10::default_excluded_set |
                                            c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                            c10::autocast_dispatch_keyset | c10::python_ks;
  const c10::impl::ForceDispatchKeyGuard keys(kIncluded, kExcluded);
  return c10::make_intrusive<CompressedTensorImpl>(layout, dtype, device);
}

}  // namespace

CompressedTensorImpl::CompressedTensorImpl(c10::Layout layout, caffe2::TypeMeta dtype,
                                           c10::Device device)
    : SparseCsrTensorImpl(c10::DispatchKeySet(c10::DispatchKey::SparseCsrCPU),
                          c10::Device(c10::kCPU), layout, dtype) {
  _change_backend_component_keys(device);
  device_opt_ = device;
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> CompressedTensorImpl::copy_and_detach(
    Version&& version, bool allow_metadata_change) const {
  if (auto seen = detached_by_mode(*this, version, allow_metadata_change)) return seen;
  auto copy = make(layout_impl(), dtype(), device());
  TensorImpl::copy_tensor_metadata(this, copy.get(), std::forward<Version>(version),
                                   allow_metadata_change);
  copy->crow_indices_ = crow_indices_;
  copy->col_indices_ = col_indices_;
  copy->values_ = values_;
  copy->refresh_numel();
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl> CompressedTensorImpl::shallow_copy_and_detach(
    const c10::VariableVersion& version_counter, bool allow_tensor_metadata_change) const {
  return copy_and_detach(version_counter, allow_tensor_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> CompressedTensorImpl::shallow_copy_and_detach(
    c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const {
  return copy_and_detach(std::move(version_counter), allow_tensor_metadata_change);
}

at::Tensor make_compressed_tensor(c10::Layout layout, caffe2::TypeMeta dtype, c10::Device device) {
  return at::Tensor(make(layout, dtype, device));
}

}  // namespace torch_lazy
