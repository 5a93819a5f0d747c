// The compressed sparse tensor of device `lazy`: in rows, in columns, or in blocks of them.
//
// It is PyTorch's own, whose constructor takes devices that it lists. So one of the CPU is made,
// and its device changed; what copies the object has to do the same.
#pragma once

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/core/Tensor.h>

namespace torch_lazy {

class CompressedTensorImpl final : public at::SparseCsrTensorImpl {
 public:
  CompressedTensorImpl(c10::Layout layout, caffe2::TypeMeta dtype, c10::Device device);

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter,
      bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const override;

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy_and_detach(Version&& version,
                                                 bool allow_metadata_change) const;
};

// One without members yet.
at::Tensor make_compressed_tensor(c10::Layout layout, caffe2::TypeMeta dtype, c10::Device device);

}  // namespace torch_lazy
