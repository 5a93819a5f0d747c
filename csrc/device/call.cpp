#include "device/call.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "plan/step.h"

namespace torch_lazy {
namespace {

// The word for a tensor that this device does not have.
std::string form_of(const at::Tensor& tensor) {
  if (tensor.is_nested()) return "nested";
  return tensor.is_quantized() ? "quantized" : c10::str(tensor.layout());
}

int64_t byte_offset(const c10::TensorImpl& impl) {
  return impl.storage_offset() * int64_t(impl.itemsize());
}

}  // namespace

Call::~Call() {
  if (finished_) return;
  // The operation raised. An out= argument may have been resized all the same, and what should have
  // been overwritten was not. The open operation, which takes the lock, is destroyed after this.
  if (op_.may_rebind && !(operation_ && operation_->deferred())) take_over_arguments();
  arguments_.poison_again();
}

// An operation may have resized, transposed or moved what it wrote to, which may be given once more
// to be read. The lock is not held: a storage that is dropped here takes it too.
void Call::take_over_arguments() {
  const auto& tensors = arguments_.tensors();
  changed_.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i] || !tensors[i]->take_over_inner_metadata()) continue;
    tensors[i]->binding = {};
    for (size_t same = i; same < tensors.size(); ++same)
      changed_[same] |= tensors[same] == tensors[i];
  }
}

at::Tensor Call::tensor_argument(size_t index) const {
  return at::Tensor(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::unsafe_reclaim_from_nonowning(
          arguments_.tensors()[index]->held()));
}

// PyTorch fills new memory in place, and that counts as a write where versions are counted.
void Call::count_fill(const at::Tensor& made) const {
  if (op_.fills && !made.is_inference() &&
      !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView))
    made.unsafeGetTensorImpl()->bump_version();
}

// ---------------------------------------------------------------- deferred

// One function for all kinds of outputs: split, each recorded operation costs 20 ns more.
std::span<at::Tensor> Call::deferred_outputs(bool arguments_too) {
  using Kind = OutputMetadata::Kind;
  LazyTensorImpl* const* const arguments = arguments_.tensors().data();
  const WarningsId warnings = operation_->matched_warnings();
  for (const KnownOutput& output : operation_->matched_outputs()) {
    if (output.kind == Kind::kUndefined) {
      outputs_.emplace_back();
      continue;
    }
    if (output.kind == Kind::kArgument || output.kind == Kind::kArgumentRebound) {
      LazyTensorImpl& impl = *arguments[output.source];
      if (output.kind == Kind::kArgumentRebound) {
        impl.rebind(output.storage_bytes, *output.geometry, output.offset);
        operation_->bind_output(output, impl.binding, impl.state());
      }
      outputs_.push_back(arguments_too ? tensor_argument(output.source) : at::Tensor());
      continue;
    }
    // A tensor with the metadata that the known trace has: on a pending storage, or a view.
    const caffe2::TypeMeta dtype = c10::scalarTypeToTypeMeta(output.dtype);
    at::Tensor made;
    int64_t offset = output.offset;
    if (output.kind == Kind::kFresh) {
      made = at::detail::make_tensor<LazyTensorImpl>(
          make_lazy_storage(output.storage_bytes, operation_->device_index()), dtype);
      count_fill(made);
    } else {
      const LazyTensorImpl& base = output.kind == Kind::kAliasArgument
                                       ? *arguments[output.source]
                                       : *lazy_impl(outputs_[output.source]);
      made = at::detail::make_tensor<LazyTensorImpl>(
          c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), dtype);
      offset += byte_offset(base);
    }
    auto& impl = *static_cast<LazyTensorImpl*>(made.unsafeGetTensorImpl());
    impl.take_geometry(*output.geometry, offset == 0 ? 0 : offset / int64_t(dtype.itemsize()));
    if ((output.flags | tensor_flags(impl)) & (kConj | kNeg)) {
      impl._set_conj((output.flags & kConj) != 0);
      impl._set_neg((output.flags & kNeg) != 0);
    }
    operation_->bind_output(output, impl.binding, impl.state());
    outputs_.push_back(std::move(made));
  }
  if (op_.writes) arguments_.note_pending_writes();
  finish();
  if (warnings != kNoWarnings) [[unlikely]]
    give_warnings(warnings);
  return outputs_;
}

// ---------------------------------------------------------------- run at the call

void Call::record_argument_output(size_t source) {
  if (!operation_) return;
  LazyTensorImpl& impl = *arguments_.tensors()[source];
  if (op_.may_rebind && changed_[source])
    record_output(OutputMetadata::Kind::kArgumentRebound, source, impl);
  else
    operation_->argument_output(uint32_t(source));
}

void Call::record_output(OutputMetadata::Kind kind, size_t source, LazyTensorImpl& impl,
                         const LazyTensorImpl* view_of) {
  operation_->output(kind, uint32_t(source), impl,
                     byte_offset(impl) - (view_of ? byte_offset(*view_of) : 0),
                     view_of ? 0 : int64_t(impl.lazy_storage().nbytes()), tensor_flags(impl),
                     impl.binding, impl.state());
}

void Call::record_argument(size_t schema_argument) {
  const size_t source = arguments_.start(schema_argument);
  LazyTensorImpl* const impl = arguments_.tensors()[source];
  if (!impl) return;
  record_argument_output(source);
  wrapped_.push_back(impl);
}

at::Tensor Call::argument(size_t schema_argument) {
  record_argument(schema_argument);
  const size_t source = arguments_.start(schema_argument);
  return arguments_.tensors()[source] ? tensor_argument(source) : at::Tensor();
}

size_t Call::viewed_argument() const {
  const std::vector<ReturnEffect>& returns = op_.effects->returns;
  if (returns.empty()) return 0;
  // A list of tensors is one return.
  const int argument = returns[std::min(wrapped_.size(), returns.size() - 1)].argument;
  return argument < 0 ? 0 : arguments_.start(size_t(argument));
}

Call::ViewedTensor Call::viewed_by(const at::Tensor& inner) const {
  using Kind = OutputMetadata::Kind;
  const c10::StorageImpl* const buffer = inner.storage().unsafeGetStorageImpl();
  const auto find = [&](c10::ArrayRef<LazyTensorImpl*> tensors, size_t from) {
    while (from < tensors.size() &&
           !(tensors[from] && tensors[from]->state().buffer.unsafeGetStorageImpl() == buffer))
      ++from;
    return from;
  };
  const c10::ArrayRef<LazyTensorImpl*> arguments = arguments_.tensors(), outputs = wrapped_;
  if (size_t source = find(arguments, 0); source < arguments.size()) {
    // Others may be over the same storage, and lie elsewhere in it to each other the next time.
    if (arguments.size() > 1)
      if (const size_t said = find(arguments, viewed_argument()); said < arguments.size())
        source = said;
    return {Kind::kAliasArgument, source, arguments[source]};
  }
  const size_t source = find(outputs, 0);
  if (source == outputs.size()) return {};
  return {Kind::kAliasOutput, source, outputs[source]};
}

at::Tensor Call::wrap(at::Tensor&& inner) {
  // A random operator of another device may leave its seed on the host, for its gradient.
  const bool left_on_host =
      !operation_ && inner.defined() && inner.is_cpu() && !execution_device().is_cpu();
  if (!inner.defined() || arguments_.makes_elsewhere() || left_on_host) {
    if (operation_) operation_->undefined_output();
    wrapped_.push_back(nullptr);
    return std::move(inner);
  }
  if (inner._is_zerotensor()) [[unlikely]]
    inner = kept_result(std::move(inner));
  const bool strided = inner.has_storage() && inner.layout() == c10::kStrided &&
                       !inner.is_quantized() && !inner.is_nested();
  if (!strided && operation_) operation_->give_up_outputs();
  TORCH_CHECK_NOT_IMPLEMENTED(strided, op_.name, " returned a ", form_of(inner),
                              " tensor made of strided ones, which device lazy supports of "
                              "PyTorch's own operators: call it on the cpu");
  const auto& arguments = arguments_.tensors();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] && arguments[i]->is_inner(inner)) {
      record_argument_output(i);
      wrapped_.push_back(arguments[i]);
      return tensor_argument(i);
    }
  }
  const auto [kind, source, base] = viewed_by(inner);
  at::Tensor wrapped;
  if (base) {
    wrapped = wrap_inner_view(std::move(inner), base->storage(), base->key_set());
  } else {
    wrapped = wrap_inner(kept_result(std::move(inner)));
    count_fill(wrapped);
  }
  auto& impl = *static_cast<LazyTensorImpl*>(wrapped.unsafeGetTensorImpl());
  wrapped_.push_back(&impl);
  if (operation_) record_output(kind, source, impl, base);
  return wrapped;
}

}  // namespace torch_lazy
