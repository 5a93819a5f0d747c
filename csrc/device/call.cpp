#include "device/call.h"

#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>

#include "base/metrics.h"
#include "device/fallback_warning.h"
#include "trace/debug.h"

namespace torch_lazy {
namespace {

uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_mask(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Bool || dtype == c10::ScalarType::Byte;
}

// Of a type whose value is None.
bool may_be_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType)
    return type.containedType(0)->kind() == c10::TypeKind::TensorType;
  return type.kind() == c10::TypeKind::TensorType || type.kind() == c10::TypeKind::NoneType;
}

bool is_wrapped_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

}  // namespace

Call::~Call() {
  if (finished_) return;
  // The operation raised. An out= argument may have been resized all the same, and what should have
  // been overwritten was not.
  if (op_.may_rebind && !deferred_)
    for (LazyTensorImpl* impl : arguments_)
      if (impl && impl->take_over_inner_metadata()) impl->binding = {};
  if (healed_) healed_->state().error = healed_error_;
  if (!open_) return;
  if (deferred_)
    recorder_.end_deferred();
  else
    recorder_.abandon();
}

// ---------------------------------------------------------------- looking

void Call::look(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  LazyTensorImpl* impl = lazy_impl(tensor);
  all_lazy_ &= impl != nullptr;
  if (!impl && is_wrapped_number(tensor)) return;
  arguments_.push_back(impl);
  if (impl) {
    StorageState& state = impl->state();
    if (state.error && arguments_.size() == 1 && op_.effects->overwrites_first_argument)
      heal(*impl);
    recorder_.settle(impl->binding, state);
    exported_ |= state.exported;
    touches_window_ |= recorder_.touches(state);
    return;
  }
  const c10::DispatchKeySet keys = tensor.key_set();
  has_fake_ |= keys.has_backend(c10::BackendComponent::LazyBit);
}

void Call::look(const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor>& tensor : tensors) {
    if (tensor && tensor->defined()) has_mask_ |= is_mask(tensor->scalar_type());
    look(tensor);
  }
}

void Call::look(const c10::IValue& value) {
  if (value.isTensor()) {
    look(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) look(tensor);
  } else if (value.isOptionalTensorList()) {
    look(value.toOptionalTensorList());
  } else if (value.isGenerator()) {
    has_generator_ |= value.toGenerator().defined();
  } else if (value.isUnsigned() && !value.isInt()) {
    unrecordable_ = true;  // beyond int64
  } else if (value.isScalar()) {
    look(value.toScalar());
  }
}

Call::Way Call::way() {
  if (has_fake_) return Way::kMeta;
  const bool fills = op_.random || op_.uninitialized || has_generator_;
  const bool recordable = op_.deferrable && !fills && !exported_ && !unrecordable_ &&
                          !rebinds_twice() && !(op_.dynamic_with_mask && has_mask_);
  if (recordable) return Way::kRecord;
  // What only makes or fills memory that the window does not know can run before it.
  if (fills && op_.effects->known && !touches_window_ && !exported_) return Way::kAtOnce;
  if (!op_.effects->known) warn_unknown_operator(op_);
  recorder_.sync(exported_ ? std::string_view("exported memory") : op_.name);
  return Way::kAtOnce;
}

void Call::heal(LazyTensorImpl& impl) {
  healed_error_ = impl.state().error;
  if (impl.heal_if_overwritten()) healed_ = &impl;
}

// An argument may be given twice. Where one of the two is resized or moved, only running it shows
// what the other becomes.
bool Call::rebinds_twice() const {
  if (!op_.may_rebind) return false;
  for (size_t i = 0; i < arguments_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (arguments_[i] && arguments_[i] == arguments_[j]) return true;
  return false;
}

// ---------------------------------------------------------------- recording

void Call::encode(const at::Tensor& tensor) {
  if (!tensor.defined()) return word(make_word(Tag::kUndefined));
  if (LazyTensorImpl* impl = lazy_impl(tensor)) {
    LazyStorage& storage = impl->lazy_storage();
    if (recorder_.tensor(impl->binding, storage.state, *impl, int64_t(storage.nbytes()),
                         tensor_flags(*impl)))
      recorder_.bind_input(impl->resident_inner());
    return;
  }
  if (is_wrapped_number(tensor)) {
    uint64_t bits[2] = {0, 0};
    std::memcpy(bits, tensor.const_data_ptr(), tensor.itemsize());
    word(make_word(Tag::kNumber, 0, uint16_t(tensor.scalar_type())));
    word(bits[0]);
    return word(bits[1]);
  }
  recorder_.cpu_tensor(tensor);
}

void Call::encode(const std::optional<at::Tensor>& tensor) {
  if (tensor)
    encode(*tensor);
  else
    word(make_word(Tag::kUndefined));
}

void Call::encode(at::ITensorListRef tensors) {
  word(make_word(Tag::kTensorList, uint32_t(tensors.size())));
  for (const at::Tensor& tensor : tensors) encode(tensor);
}

void Call::encode(at::TensorList tensors) {
  encode(at::ITensorListRef(tensors));
}

void Call::encode(const c10::List<std::optional<at::Tensor>>& tensors) {
  word(make_word(Tag::kOptionalTensorList, uint32_t(tensors.size())));
  for (const std::optional<at::Tensor>& tensor : tensors) encode(tensor);
}

void Call::encode(const at::Scalar& scalar) {
  if (scalar.isFloatingPoint()) return encode(scalar.toDouble());
  if (scalar.isBoolean()) return encode(scalar.toBool());
  if (scalar.isComplex()) {
    const auto value = scalar.toComplexDouble();
    word(make_word(Tag::kComplex));
    word(bits_of(value.real()));
    return word(bits_of(value.imag()));
  }
  encode(scalar.toLong());
}

void Call::encode(at::ArrayRef<at::Scalar> scalars) {
  word(make_word(Tag::kList, uint32_t(scalars.size())));
  for (const at::Scalar& scalar : scalars) encode(scalar);
}

void Call::encode(int64_t value) {
  word(make_word(Tag::kInt));
  word(uint64_t(value));
}

void Call::encode(double value) {
  word(make_word(Tag::kDouble));
  word(bits_of(value));
}

void Call::encode(c10::Device device) {
  word(make_word(Tag::kDevice, uint32_t(device.type()) << 8 | uint8_t(device.index() + 1)));
}

void Call::encode(c10::IntArrayRef list) {
  word(make_word(Tag::kIntList, uint32_t(list.size())));
  for (const int64_t value : list) word(uint64_t(value));
}

void Call::encode(c10::SymIntArrayRef list) {
  word(make_word(Tag::kIntList, uint32_t(list.size())));
  for (const c10::SymInt& value : list) word(uint64_t(value.guard_int(__FILE__, __LINE__)));
}

void Call::encode(c10::ArrayRef<double> list) {
  word(make_word(Tag::kDoubleList, uint32_t(list.size())));
  for (const double value : list) word(bits_of(value));
}

void Call::encode(const c10::IValue& value, const c10::Type& type) {
  if (value.isNone()) {
    // An undefined tensor reaches a boxed kernel as None.
    const bool tensor = may_be_tensor(type);
    return word(make_word(tensor ? Tag::kUndefined : Tag::kNone));
  }
  if (value.isTensor()) return encode(value.toTensor());
  if (value.isInt()) return encode(value.toInt());
  if (value.isDouble()) return encode(value.toDouble());
  if (value.isBool()) return encode(value.toBool());
  if (value.isComplexDouble()) return encode(at::Scalar(value.toComplexDouble()));
  if (value.isSymInt()) return encode(value.toSymInt());
  if (value.isString()) return encode(std::string_view(value.toStringRef()));
  if (value.isDevice()) return encode(value.toDevice());
  if (value.isGenerator()) return word(make_word(Tag::kGenerator));
  if (value.isIntList()) return encode(c10::IntArrayRef(value.toIntVector()));
  if (value.isSymIntList()) {
    const auto list = value.toSymIntVector();
    return encode(c10::SymIntArrayRef(list));
  }
  if (value.isDoubleList()) return encode(c10::ArrayRef<double>(value.toDoubleVector()));
  if (value.isBoolList()) {
    const c10::List<bool> list = value.toBoolList();
    word(make_word(Tag::kBoolList, uint32_t(list.size())));
    for (const bool element : list) word(element);
    return;
  }
  if (value.isTensorList()) {
    const auto list = value.toTensorVector();
    return encode(at::TensorList(list));
  }
  if (value.isOptionalTensorList()) return encode(value.toOptionalTensorList());
  if (value.isList()) {
    word(make_word(Tag::kList, uint32_t(value.toListRef().size())));
    for (const c10::IValue& element : value.toListRef()) encode(element, *element.type());
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, op_.name, " has an argument of type ", value.tagKind(),
                              ", which device lazy cannot record: run it on the cpu");
}

bool Call::match() {
  deferred_ = recorder_.match();
  return deferred_;
}

// ---------------------------------------------------------------- outputs

at::Tensor Call::tensor_argument(size_t index) const {
  return at::Tensor(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::unsafe_reclaim_from_nonowning(
          arguments_[index]));
}

// PyTorch fills new memory in place, and that counts as a write where versions are counted.
void Call::count_fill(const at::Tensor& made) const {
  if (op_.fills && !made.is_inference() &&
      !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView))
    made.unsafeGetTensorImpl()->bump_version();
}

std::span<at::Tensor> Call::deferred_outputs(bool arguments_too) {
  using Kind = OutputMetadata::Kind;
  for (const OutputMetadata& output : recorder_.matched_outputs()) {
    if (output.kind == Kind::kUndefined) {
      outputs_.emplace_back();
      continue;
    }
    if (output.kind == Kind::kArgument || output.kind == Kind::kArgumentRebound) {
      LazyTensorImpl& impl = *arguments_[output.source];
      if (output.kind == Kind::kArgumentRebound) {
        impl.rebind(output);
        recorder_.bind_output(output, impl.binding, &impl.state());
      }
      outputs_.push_back(arguments_too ? tensor_argument(output.source) : at::Tensor());
      continue;
    }
    const caffe2::TypeMeta dtype = c10::scalarTypeToTypeMeta(output.dtype);
    at::Tensor made;
    if (output.kind == Kind::kFresh) {
      made =
          at::detail::make_tensor<LazyTensorImpl>(make_lazy_storage(output.storage_bytes), dtype);
      count_fill(made);
    } else {
      const LazyTensorImpl& base =
          output.kind == Kind::kAliasArgument
              ? *arguments_[output.source]
              : *static_cast<LazyTensorImpl*>(outputs_[output.source].unsafeGetTensorImpl());
      made = at::detail::make_tensor<LazyTensorImpl>(
          c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), dtype);
    }
    auto& impl = *static_cast<LazyTensorImpl*>(made.unsafeGetTensorImpl());
    impl.set_sizes_and_strides(output.sizes, output.strides, output.offset);
    if ((output.flags | tensor_flags(impl)) & (kConj | kNeg)) {
      impl._set_conj((output.flags & kConj) != 0);
      impl._set_neg((output.flags & kNeg) != 0);
    }
    recorder_.bind_output(output, impl.binding, &impl.state());
    outputs_.push_back(std::move(made));
  }
  open_ = deferred_ = false;
  recorder_.end_deferred();
  debug_operation(op_, recorder_.location(), true);
  finished_ = true;
  return outputs_;
}

void Call::start_outputs() {
  // An operation may have resized, transposed or moved what it wrote to. Taken over before the
  // lock: it may drop a storage, and that takes the lock too.
  if (op_.may_rebind) {
    changed_.resize(arguments_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) {
      LazyTensorImpl* impl = arguments_[i];
      changed_[i] = impl && impl->take_over_inner_metadata();
      if (changed_[i]) impl->binding = {};
    }
  }
  if (open_) recorder_.begin_outputs();
}

void Call::record_argument_output(size_t source) {
  LazyTensorImpl& impl = *arguments_[source];
  if (!open_) return;
  if (!op_.may_rebind || !changed_[source]) return recorder_.argument_output(uint32_t(source));
  recorder_.output(OutputMetadata::Kind::kArgumentRebound, uint32_t(source), impl,
                   int64_t(impl.lazy_storage().nbytes()), tensor_flags(impl), impl.binding,
                   impl.state());
}

void Call::record_argument(size_t schema_argument) {
  const size_t source = starts_[schema_argument];
  if (!arguments_[source]) return;
  record_argument_output(source);
  wrapped_.push_back(arguments_[source]);
}

at::Tensor Call::argument(size_t schema_argument) {
  record_argument(schema_argument);
  const size_t source = starts_[schema_argument];
  return arguments_[source] ? tensor_argument(source) : at::Tensor();
}

at::Tensor Call::wrap(at::Tensor inner) {
  using Kind = OutputMetadata::Kind;
  if (!inner.defined()) {
    if (open_) recorder_.undefined_output();
    wrapped_.push_back(nullptr);
    return inner;
  }
  // A tensor of zeros without memory; here it gets some.
  if (inner._is_zerotensor()) inner = at::zeros(inner.sizes(), inner.options());
  TORCH_CHECK_NOT_IMPLEMENTED(inner.has_storage() && inner.layout() == c10::kStrided, op_.name,
                              " returned a ", inner.layout(),
                              " tensor; device lazy has strided tensors only: call it on the cpu");
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i] && arguments_[i]->is_inner(inner)) {
      record_argument_output(i);
      wrapped_.push_back(arguments_[i]);
      return tensor_argument(i);
    }
  }
  Kind kind = Kind::kFresh;
  size_t source = 0;
  const c10::StorageImpl* buffer = inner.storage().unsafeGetStorageImpl();
  const auto is_buffer_of = [&](const LazyTensorImpl* impl) {
    return impl && impl->state().buffer.unsafeGetStorageImpl() == buffer;
  };
  for (; source < arguments_.size(); ++source)
    if (is_buffer_of(arguments_[source])) {
      kind = Kind::kAliasArgument;
      break;
    }
  if (kind == Kind::kFresh)
    for (source = 0; source < wrapped_.size(); ++source)
      if (is_buffer_of(wrapped_[source])) {
        kind = Kind::kAliasOutput;
        break;
      }
  at::Tensor wrapped;
  if (kind == Kind::kFresh) {
    source = 0;
    wrapped = wrap_inner(std::move(inner));
    count_fill(wrapped);
  } else {
    const c10::TensorImpl& base =
        kind == Kind::kAliasArgument ? *arguments_[source] : *wrapped_[source];
    wrapped = wrap_inner_view(std::move(inner), base.storage(), base.key_set());
  }
  auto& impl = *static_cast<LazyTensorImpl*>(wrapped.unsafeGetTensorImpl());
  wrapped_.push_back(&impl);
  if (open_)
    recorder_.output(kind, uint32_t(source), impl, int64_t(impl.lazy_storage().nbytes()),
                     tensor_flags(impl), impl.binding, impl.state());
  return wrapped;
}

void Call::finish() {
  finished_ = true;
  if (!open_) return;
  open_ = false;
  recorder_.end_run();
  debug_operation(op_, recorder_.location(), false);
}

}  // namespace torch_lazy
