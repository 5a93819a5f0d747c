// Sparse tensors of the device, in coordinate form. One is PyTorch's own sparse tensor whose
// indices and values are lazy tensors. What only looks at it or puts it together is PyTorch's code
// for any device; every other operator is a sync point and runs on the execution device, on a
// sparse tensor that shares the memory of indices and values.
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/values_native.h>

#include "base/immortal_library.h"
#include "device/boxed.h"
#include "device/call.h"
#include "device/collectives.h"
#include "device/register.h"
#include "offload/host_call.h"
#include "offload/runtime_device.h"
#include "ops/replace_tensors.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

at::SparseTensorImpl* sparse_impl(const at::Tensor& tensor) {
  const bool sparse = tensor.defined() && tensor.layout() == c10::kSparse &&
                      tensor.device().type() == c10::DeviceType::Lazy;
  return sparse ? static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl()) : nullptr;
}

at::Tensor make_sparse(const at::SparseTensorImpl& like, const at::Tensor& indices,
                       const at::Tensor& values, c10::Device device) {
  return at::native::new_with_dims_and_tensor_sparse_symint(
      like.sparse_dim(), like.dense_dim(), c10::fromIntArrayRefSlow(like.sizes()), indices, values,
      c10::typeMetaToScalarType(like.dtype()), c10::kSparse, device, false, like.coalesced());
}

// Where such operators run: on the host for a device that has none.
c10::Device sparse_device(c10::Device lazy) {
  return is_offloaded() ? c10::Device(c10::kCPU) : inner_device(lazy);
}

// One run of an operator on the execution device.
class SparseCall {
 public:
  explicit SparseCall(const c10::OperatorHandle& op) : op_(operator_info(op)) {}

  c10::IValue inner(const c10::IValue& value) {
    if (value.isDevice()) return sparse_device(value.toDevice());
    if (value.isGenerator()) return inner_value(value);
    return replace_tensors(value, [this](const at::Tensor& tensor) { return inner(tensor); });
  }

  // What an argument has become that the operator wrote to.
  void write_back(const c10::IValue& argument, const c10::IValue& inner) {
    if (argument.isTensor()) return write_back(argument.toTensor(), inner.toTensor());
    if (!argument.isTensorList()) return;
    const auto arguments = argument.toTensorList(), inners = inner.toTensorList();
    for (size_t i = 0; i < arguments.size(); ++i) write_back(arguments.get(i), inners.get(i));
  }
  void write_back(const at::Tensor& argument, const at::Tensor& inner) {
    if (at::SparseTensorImpl* const impl = sparse_impl(argument)) {
      const auto& from = *static_cast<at::SparseTensorImpl*>(inner.unsafeGetTensorImpl());
      impl->raw_resize_(from.sparse_dim(), from.dense_dim(), from.sizes());
      impl->set_indices_and_values_unsafe(wrap_dense(from.indices()), wrap_dense(from.values()));
      impl->set_coalesced(from.coalesced());
    } else if (LazyTensorImpl* const dense = lazy_impl(argument)) {
      if (is_offloaded()) take_back_from_host(dense->inner(), inner);
      if (dense->take_over_inner_metadata()) dense->binding = {};
    }
  }

  at::Tensor wrap(const at::Tensor& inner) {
    if (!inner.defined()) return inner;
    if (inner.layout() == c10::kStrided) return wrap_dense(inner);
    TORCH_CHECK_NOT_IMPLEMENTED(inner.layout() == c10::kSparse, op_.name, " returned a ",
                                inner.layout(),
                                " tensor; device lazy has strided tensors and sparse ones in "
                                "coordinate form: call it on the cpu");
    const auto& impl = *static_cast<at::SparseTensorImpl*>(inner.unsafeGetTensorImpl());
    return make_sparse(impl, wrap_dense(impl.indices()), wrap_dense(impl.values()),
                       lazy_device(lazy_index(is_offloaded() ? device_ : inner.device())));
  }

 private:
  struct Part {
    at::Tensor lazy;
    at::Tensor inner;
  };

  at::Tensor inner(const at::Tensor& tensor) {
    if (at::SparseTensorImpl* const impl = sparse_impl(tensor))
      return make_sparse(*impl, inner_dense(impl->indices()), inner_dense(impl->values()),
                         sparse_device(impl->device()));
    return tensor.defined() ? inner_dense(tensor) : tensor;
  }

  at::Tensor inner_dense(const at::Tensor& tensor) {
    LazyTensorImpl* const impl = lazy_impl(tensor);
    if (!impl) return tensor;
    Recorder& recorder = Recorder::current();
    recorder.resolve(impl->binding, impl->state());
    recorder.sync(Flush::by(op_));
    const at::Tensor& inner = impl->inner();
    device_ = inner.device();
    // Which of its tensors an operator writes is seen at its end.
    parts_.push_back(
        {tensor, mirrored(inner.storage()) ? lent_on_host(inner, Access::kRead, op_.name) : inner});
    return parts_.back().inner;
  }

  // A lazy tensor of the same bytes. Two of them never have one memory without being views of one
  // storage: what came in goes out as itself, and what shares memory with it is copied.
  at::Tensor wrap_dense(const at::Tensor& inner) {
    for (const Part& part : parts_) {
      if (!inner.storage().is_alias_of(part.inner.storage())) continue;
      const bool same = inner.sizes() == part.inner.sizes() &&
                        inner.strides() == part.inner.strides() &&
                        inner.storage_offset() == part.inner.storage_offset();
      return same ? part.lazy : remember(inner.clone());
    }
    return remember(inner);
  }
  at::Tensor remember(const at::Tensor& inner) {
    parts_.push_back(
        {wrap_inner(is_offloaded() ? adopted_from_host(inner, device_) : inner), inner});
    return parts_.back().lazy;
  }

  const OperatorInfo& op_;
  c10::Device device_ =
      execution_device().device(-1);  // of the last dense tensor that it was given
  std::vector<Part> parts_;
};

void sparse_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t base = stack->size() - count;
  const std::vector<c10::IValue> arguments(stack->begin() + int64_t(base), stack->end());
  const StepThreadState state;
  SparseCall call(op);
  for (size_t i = 0; i < count; ++i) (*stack)[base + i] = call.inner(arguments[i]);
  const std::vector<c10::IValue> inner(stack->begin() + int64_t(base), stack->end());
  // By its arguments: an operator may have sparse and strided ones, and the CPU a kernel for each.
  op.callBoxed(stack);

  // Collectives write the tensors of their lists, which no schema says, and may still be at it.
  const bool collective = op.operator_name().getNamespace() == "c10d";
  if (collective)
    for (size_t i = base; i < stack->size(); ++i) wait_if_work((*stack)[i]);
  for (size_t i = 0; i < count; ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if (collective || (alias && alias->isWrite())) call.write_back(arguments[i], inner[i]);
  }
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    c10::IValue& value = (*stack)[base + i];
    if (value.isTensor()) {
      const int source = operator_info(op).returned_arguments[i];
      value = source >= 0 ? arguments[size_t(source)] : call.wrap(value.toTensor());
    } else {
      value =
          replace_tensors(value, [&call](const at::Tensor& tensor) { return call.wrap(tensor); });
    }
  }
}

// Makes a sparse gradient where its argument `sparse` says so.
void embedding_bag_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack) {
  static const int place = op.schema().argumentIndexWithName("sparse").value();
  const size_t count = op.schema().arguments().size();
  const bool sparse = (*stack)[stack->size() - count + size_t(place)].toBool();
  return sparse ? sparse_kernel(op, keys, stack) : boxed_kernel(op, keys, stack);
}

// PyTorch's own, which ask neither device nor values.
void register_structure(torch::Library& library) {
  namespace native = at::native;
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

// A composite kernel hides an operator from the fallback, and would take sparse tensors for strided
// ones where the CPU has a kernel of its own for them: unsqueeze, permute.
void register_what_the_cpu_has(torch::Library& library) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::SparseCPU) ||
        op->hasKernelForDispatchKey(c10::DispatchKey::SparseLazy) ||
        !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd))
      continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    library.impl((name.name.substr(6) + overload).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&sparse_kernel>());
  }
}

}  // namespace

void register_sparse_operators() {
  const auto library = [](const char* name_space, c10::DispatchKey key) -> torch::Library& {
    return immortal_library(torch::Library::IMPL, name_space, key);
  };
  library("_", c10::DispatchKey::SparseLazy)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&sparse_kernel>());
  torch::Library& sparse = library("aten", c10::DispatchKey::SparseLazy);
  register_structure(sparse);
  register_what_the_cpu_has(sparse);

  // Those that make a sparse tensor of a strided one.
  torch::Library& strided = library("aten", c10::DispatchKey::Lazy);
  for (const char* name : {"_to_sparse", "_to_sparse.sparse_dim"})
    strided.impl(name, torch::CppFunction::makeFromBoxedFunction<&sparse_kernel>());
  strided.impl("_embedding_bag_backward",
               torch::CppFunction::makeFromBoxedFunction<&embedding_bag_backward>());
}

}  // namespace torch_lazy
