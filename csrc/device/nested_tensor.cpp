#include "device/nested_tensor.h"

#include <utility>

#include "device/detached_by_mode.h"

namespace torch_lazy {
namespace {

// PyTorch's constructors take storages of devices that it lists, but for that of a view. Copies of
// the object have to be made by it, too.
class StridedNestedTensorImpl final : public at::native::NestedTensorImpl {
 public:
  StridedNestedTensorImpl(const at::native::NestedTensorImpl& like, const at::Tensor& buffer)
      : NestedTensorImpl(VIEW, buffer, like.get_nested_sizes(), like.get_nested_strides(),
                         like.get_storage_offsets()) {}

 protected:
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter,
      bool allow_tensor_metadata_change) const override {
    return copy_and_detach(version_counter, allow_tensor_metadata_change);
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const override {
    return copy_and_detach(std::move(version_counter), allow_tensor_metadata_change);
  }

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy_and_detach(Version&& version,
                                                 bool allow_metadata_change) const {
    if (auto seen = detached_by_mode(*this, version, allow_metadata_change)) return seen;
    auto copy = c10::make_intrusive<StridedNestedTensorImpl>(*this, get_unsafe_storage_as_tensor());
    copy_tensor_metadata(this, copy.get(), std::forward<Version>(version), allow_metadata_change);
    return copy;
  }
};

}  // namespace

at::Tensor make_nested_tensor(const at::native::NestedTensorImpl& like, const at::Tensor& buffer) {
  return at::detail::make_tensor<StridedNestedTensorImpl>(like, buffer);
}

}  // namespace torch_lazy
