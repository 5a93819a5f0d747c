// Sparse tensors of the device, in coordinate form and compressed. One is PyTorch's own sparse
// tensor whose members are lazy tensors. What only looks at it or puts it together is PyTorch's
// code for any device; every other operator runs at the call (members_call.h).
#include <ATen/Context.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_validate_sparse_compressed_tensor_args.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/values_native.h>

#include "base/immortal_library.h"
#include "device/boxed.h"
#include "device/compressed_tensor.h"
#include "device/members_call.h"
#include "device/register.h"

namespace torch_lazy {
namespace {

namespace native = at::native;

// A compressed tensor of these members, which PyTorch's function makes on devices that it lists.
at::Tensor make_of_members(const at::Tensor& compressed_indices, const at::Tensor& plain_indices,
                           const at::Tensor& values, c10::SymIntArrayRef size,
                           std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                           std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const c10::Device there = device.value_or(values.device());
  if (there.type() != c10::DeviceType::Lazy || !layout)
    return native::_sparse_compressed_tensor_unsafe_symint(
        compressed_indices, plain_indices, values, size, dtype, layout, there, pin_memory);
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (at::globalContext().checkSparseTensorInvariants())
    at::_validate_sparse_compressed_tensor_args(compressed_indices, plain_indices, values, sizes,
                                                *layout);
  at::Tensor made =
      make_compressed_tensor(*layout, c10::scalarTypeToTypeMeta(c10::dtype_or_default(dtype)),
                             there.has_index() ? there : values.device());
  static_cast<at::SparseCsrTensorImpl*>(made.unsafeGetTensorImpl())
      ->set_member_tensors(compressed_indices, plain_indices, values, sizes);
  return made;
}

template <c10::Layout kLayout>
at::Tensor make_of_layout(const at::Tensor& compressed_indices, const at::Tensor& plain_indices,
                          const at::Tensor& values, at::IntArrayRef size,
                          std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                          std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return at::_sparse_compressed_tensor_unsafe(compressed_indices, plain_indices, values, size,
                                              dtype, kLayout, device, pin_memory);
}

// Makes a sparse gradient where its argument `sparse` says so.
void embedding_bag_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack) {
  static const int place = op.schema().argumentIndexWithName("sparse").value();
  const size_t count = op.schema().arguments().size();
  const bool sparse = (*stack)[stack->size() - count + size_t(place)].toBool();
  return sparse ? members_kernel(op, keys, stack) : boxed_kernel(op, keys, stack);
}

// PyTorch's own, which ask neither device nor values.
void register_structure_of_coordinates(torch::Library& library) {
  library.impl("_sparse_coo_tensor_with_dims_and_tensors",
               native::new_with_dims_and_tensor_sparse_symint);
  library.impl("_sparse_coo_tensor_with_dims", native::new_with_dims_sparse);
  library.impl("empty.memory_format", native::empty_sparse_symint);
  library.impl("_indices", native::_indices_sparse);
  library.impl("_values", native::_values_sparse);
  library.impl("indices", native::indices_sparse);
  library.impl("values", native::values_sparse);
  library.impl("_nnz", native::_nnz_sparse);
  library.impl("is_coalesced", native::is_coalesced_sparse);
  library.impl("_coalesced_", native::_coalesced_sparse_);
  library.impl("sparse_dim", native::sparse_dim_sparse);
  library.impl("dense_dim", native::dense_dim_sparse);
  library.impl("sparse_resize_", native::sparse_resize_);
  library.impl("sparse_resize_and_clear_", native::sparse_resize_and_clear_);
  library.impl("clone", native::clone_sparse);
  library.impl("copy_", native::copy_sparse_wrapper_);
  library.impl("copy_sparse_to_sparse_", native::copy_sparse_);
}

void register_structure_of_compressed(torch::Library& library) {
  library.impl("empty.memory_format", native::empty_sparse_compressed_symint);
  library.impl("values", native::values_sparse_csr);
  library.impl("crow_indices", native::crow_indices_sparse_csr);
  library.impl("col_indices", native::col_indices_sparse_csr);
  library.impl("ccol_indices", native::ccol_indices_sparse_csr);
  library.impl("row_indices", native::row_indices_sparse_csr);
  library.impl("_nnz", native::_nnz_sparse_csr);
  library.impl("sparse_dim", native::sparse_dim_sparse_csr);
  library.impl("dense_dim", native::dense_dim_sparse_csr);
  library.impl("resize_as_sparse_", native::resize_as_sparse_compressed_);
  library.impl("clone", native::clone_sparse_compressed);
  library.impl("copy_", native::copy_sparse_compressed_);
}

void register_makers_of_compressed(torch::Library& library) {
  library.impl("_sparse_compressed_tensor_unsafe", make_of_members);
  library.impl("_sparse_csr_tensor_unsafe", make_of_layout<c10::kSparseCsr>);
  library.impl("_sparse_csc_tensor_unsafe", make_of_layout<c10::kSparseCsc>);
  library.impl("_sparse_bsr_tensor_unsafe", make_of_layout<c10::kSparseBsr>);
  library.impl("_sparse_bsc_tensor_unsafe", make_of_layout<c10::kSparseBsc>);
}

// A composite kernel hides an operator from the fallback, and would take sparse tensors for strided
// ones where the CPU has a kernel of its own for them: unsqueeze, permute.
template <c10::DispatchKey on_cpu>
void register_what_the_cpu_has(c10::DispatchKey here) {
  register_members_kernel(here, [](const c10::OperatorHandle& op) {
    return op.hasKernelForDispatchKey(on_cpu) &&
           op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
  });
}

torch::Library& library(c10::DispatchKey key) {
  return immortal_library(torch::Library::IMPL, "aten", key);
}

}  // namespace

void register_sparse_operators() {
  using c10::DispatchKey;
  register_members_fallback(DispatchKey::SparseLazy);
  register_structure_of_coordinates(library(DispatchKey::SparseLazy));
  register_what_the_cpu_has<DispatchKey::SparseCPU>(DispatchKey::SparseLazy);
  register_members_fallback(DispatchKey::SparseCsrLazy);
  register_structure_of_compressed(library(DispatchKey::SparseCsrLazy));
  register_makers_of_compressed(library(DispatchKey::SparseCsrLazy));
  // They make a tensor without members, of a device that PyTorch lists.
  register_members_kernel(
      DispatchKey::SparseCsrLazy,
      [](const c10::OperatorHandle& op) { return op.operator_name().overload_name.empty(); },
      {"aten::_sparse_compressed_tensor_with_dims", "aten::zeros_like"});
  register_what_the_cpu_has<DispatchKey::SparseCsrCPU>(DispatchKey::SparseCsrLazy);

  // Composites that ask for a device which PyTorch lists: autograd would take them apart too.
  register_makers_of_compressed(library(DispatchKey::AutogradLazy));
  for (const DispatchKey key : {DispatchKey::AutogradLazy, DispatchKey::Lazy})
    register_members_kernel(key, [](const c10::OperatorHandle&) { return true; },
                            {"aten::_validate_sparse_"});

  // Those that make a sparse tensor of a strided one.
  register_members_kernel(
      DispatchKey::Lazy,
      [](const c10::OperatorHandle& op) { return op.hasKernelForDispatchKey(DispatchKey::CPU); },
      {"aten::_to_sparse"});
  library(DispatchKey::Lazy)
      .impl("_embedding_bag_backward",
            torch::CppFunction::makeFromBoxedFunction<&embedding_bag_backward>());
}

}  // namespace torch_lazy
