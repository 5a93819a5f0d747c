#include "trace/number_input.h"

#include <utility>

namespace torch_lazy {

at::Tensor number_input(double& number) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), sizeof(double),
                       c10::DataPtr(&number, c10::kCPU));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      caffe2::TypeMeta::Make<double>());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({});
  return tensor;
}

}  // namespace torch_lazy
