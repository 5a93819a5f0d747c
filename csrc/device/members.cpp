#include "device/members.h"

#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>

#include "device/compressed_tensor.h"
#include "device/lazy_tensor.h"
#include "device/nested_tensor.h"
#include "device/register.h"

namespace torch_lazy {
namespace {

at::SparseTensorImpl& coordinates(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl& compressed(const at::Tensor& tensor) {
  return *static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::QTensorImpl& quantized(const at::Tensor& tensor) {
  return *static_cast<at::QTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::native::NestedTensorImpl& nested(const at::Tensor& tensor) {
  return *static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

// A plain tensor of the storage's device, without sizes yet.
at::Tensor over_storage(const c10::TensorImpl& impl) {
  c10::Storage storage(impl.storage());
  const c10::Device device = impl.device();
  if (device.type() == c10::DeviceType::Lazy)
    return at::detail::make_tensor<LazyTensorImpl>(std::move(storage), impl.dtype());
  const auto key = c10::computeDispatchKey(c10::kByte, c10::kStrided, device);
  return at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                                  impl.dtype());
}

// A quantized tensor without its quantizer.
at::Tensor integers_of(const at::QTensorImpl& impl) {
  at::Tensor made = over_storage(impl);
  made.unsafeGetTensorImpl()->set_sizes_and_strides(impl.sizes(), impl.strides(),
                                                    impl.storage_offset());
  return made;
}

at::Tensor buffer_of(const at::native::NestedTensorImpl& impl) {
  at::Tensor made = over_storage(impl);
  made.unsafeGetTensorImpl()->set_sizes_contiguous({int64_t(impl.get_buffer_size())});
  return made;
}

void take_integers(at::QTensorImpl& impl, const at::Tensor& integers) {
  impl.set_sizes_and_strides(integers.sizes(), integers.strides(), integers.storage_offset());
}

at::Tensor assemble_quantized(at::QTensorImpl& like, const at::Tensor& integers,
                              c10::Device device) {
  const auto key =
      c10::computeDispatchKey(c10::typeMetaToScalarType(like.dtype()), c10::kStrided, device);
  at::Tensor made = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(integers.storage()), c10::DispatchKeySet(key), like.dtype(), like.quantizer());
  take_integers(quantized(made), integers);
  return made;
}

at::Tensor assemble_nested(const at::native::NestedTensorImpl& like, const at::Tensor& buffer,
                           c10::Device device) {
  if (device.type() == c10::DeviceType::Lazy) return make_nested_tensor(like, buffer);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      buffer, like.get_nested_sizes(), like.get_nested_strides(), like.get_storage_offsets());
}

void take_coordinates(at::SparseTensorImpl& impl, const at::SparseTensorImpl& like,
                      const at::Tensor& indices, const at::Tensor& values) {
  impl.raw_resize_(like.sparse_dim(), like.dense_dim(), like.sizes());
  impl.set_indices_and_values_unsafe(indices, values);
  impl.set_coalesced(like.coalesced());
}

// As a tensor has them for itself, without what autograd knows.
at::Tensor detached(const at::Tensor& member) {
  return at::Tensor(member.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
}

// PyTorch's own function resizes members that are replaced then, by an operator each.
at::Tensor assemble_coordinates(const at::SparseTensorImpl& like, const Members& members,
                                c10::Device device) {
  const auto key =
      c10::computeDispatchKey(c10::typeMetaToScalarType(like.dtype()), c10::kSparse, device);
  at::Tensor made =
      at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), like.dtype());
  take_coordinates(coordinates(made), like, detached(members[0]), detached(members[1]));
  return made;
}

at::Tensor assemble_compressed(const at::SparseCsrTensorImpl& like, const Members& members,
                               c10::Device device) {
  const c10::Layout layout = like.layout();
  at::Tensor made =
      device.type() == c10::DeviceType::Lazy
          ? make_compressed_tensor(layout, like.dtype(), device)
          : at::detail::make_tensor<at::SparseCsrTensorImpl>(
                c10::DispatchKeySet(c10::computeDispatchKey(std::nullopt, layout, device)), device,
                layout, like.dtype());
  compressed(made).set_member_tensors(members[0], members[1], members[2], like.sizes());
  return made;
}

// A jagged one is a class of Python's.
bool is_strided_nested(const at::Tensor& tensor) {
  return tensor.is_nested() && tensor.layout() == c10::kStrided;
}

// Before the first lazy one. Both at once, since each reads the dispatcher's tables, which the
// other changes.
void register_kernels_of(const at::Tensor& like) {
  if (!like.is_quantized() && !like.is_nested()) return;
  [[maybe_unused]] static const bool once =
      (register_kernels_of_quantized_tensors(), register_kernels_of_nested_tensors(), true);
}

}  // namespace

bool has_members(const at::Tensor& tensor) {
  return tensor.layout() == c10::kSparse || at::sparse_csr::is_sparse_compressed(tensor) ||
         tensor.is_quantized() || is_strided_nested(tensor);
}

Members members_of(const at::Tensor& tensor) {
  if (tensor.is_quantized()) return {integers_of(quantized(tensor))};
  if (tensor.is_nested()) return {buffer_of(nested(tensor))};
  if (tensor.layout() == c10::kSparse)
    return {coordinates(tensor).indices(), coordinates(tensor).values()};
  const at::SparseCsrTensorImpl& impl = compressed(tensor);
  return {impl.compressed_indices(), impl.plain_indices(), impl.values()};
}

Members parameters_of(const at::Tensor& tensor) {
  if (!tensor.is_quantized()) return {};
  const at::QuantizerPtr quantizer = quantized(tensor).quantizer();
  const auto* const by_channel = dynamic_cast<at::PerChannelAffineQuantizer*>(quantizer.get());
  return by_channel ? Members{by_channel->scales(), by_channel->zero_points()} : Members();
}

at::Tensor assemble(const at::Tensor& like, const Members& members, c10::Device device) {
  if (device.type() == c10::DeviceType::Lazy) register_kernels_of(like);
  if (like.is_quantized()) return assemble_quantized(quantized(like), members[0], device);
  if (like.is_nested()) return assemble_nested(nested(like), members[0], device);
  return like.layout() == c10::kSparse ? assemble_coordinates(coordinates(like), members, device)
                                       : assemble_compressed(compressed(like), members, device);
}

void reassemble(const at::Tensor& tensor, const at::Tensor& like, const Members& members) {
  if (tensor.is_nested()) return;  // no operator changes its sizes or its storage
  if (tensor.is_quantized()) {
    at::QTensorImpl& impl = quantized(tensor);
    if (!impl.storage().is_alias_of(members[0].storage()))
      impl.set_storage_keep_dtype(members[0].storage());
    take_integers(impl, members[0]);
    impl.set_quantizer_(quantized(like).quantizer());
  } else if (tensor.layout() == c10::kSparse) {
    take_coordinates(coordinates(tensor), coordinates(like), members[0], members[1]);
  } else {
    compressed(tensor).set_layout(like.layout());
    compressed(tensor).set_member_tensors(members[0], members[1], members[2], like.sizes());
  }
}

}  // namespace torch_lazy
