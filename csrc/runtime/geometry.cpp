#include "runtime/geometry.h"

namespace torch_lazy {

Geometry geometry_of(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const auto tensor = c10::make_intrusive<c10::TensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::Meta), caffe2::TypeMeta::Make<float>(),
      c10::Device(c10::DeviceType::Meta));
  tensor->set_sizes_and_strides(sizes, strides);
  return Geometry(*tensor);
}

}  // namespace torch_lazy
