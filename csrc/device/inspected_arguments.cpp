#include "device/inspected_arguments.h"

#include "device/fallback_warning.h"

namespace torch_lazy {
namespace {

bool is_mask(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Bool || dtype == c10::ScalarType::Byte;
}

}  // namespace

void InspectedArguments::inspect(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  LazyTensorImpl* impl = lazy_impl(tensor);
  note(kOtherTensor, !impl);
  if (!impl && tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
  tensors_.push_back(impl);
  if (!impl) return note(kFakeTensor, tensor.key_set().has_backend(c10::BackendComponent::LazyBit));
  see(impl->device().index());
  StorageState& state = impl->state();
  if (state.error && tensors_.size() == 1 && op_.effects->overwrites_first_argument) heal(*impl);
  recorder_.resolve(impl->binding, state);
  note(kExported, state.exported);
  note(kInWindow, recorder_.binds(state));
}

void InspectedArguments::inspect(const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor> tensor : tensors) {
    if (tensor && tensor->defined()) note(kMask, is_mask(tensor->scalar_type()));
    inspect(tensor);
  }
}

void InspectedArguments::inspect(const std::optional<c10::Device>& device) {
  if (!device) return;
  note(kElsewhere, device->type() != c10::DeviceType::Lazy);
  if (device->type() != c10::DeviceType::Lazy) return;
  see(lazy_index(inner_device(*device)));  // raises before anything is flushed for it
}

void InspectedArguments::inspect(const c10::IValue& value) {
  if (value.isTensor()) {
    inspect(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) inspect(tensor);
  } else if (value.isOptionalTensorList()) {
    inspect(value.toOptionalTensorList());
  } else if (value.isDevice()) {
    inspect(std::optional(value.toDevice()));
  } else if (value.isGenerator()) {
    note(kGenerator, value.toGenerator().defined());
  } else if (value.isUnsigned() && !value.isInt()) {
    note(kWithoutWords, true);  // beyond int64
  } else if (value.isScalar()) {
    inspect(value.toScalar());
  }
}

DispatchMode InspectedArguments::dispatch_mode() {
  if (has(kFakeTensor)) return DispatchMode::kMeta;
  const bool fills = op_.random || op_.uninitialized || has(kGenerator);
  const bool recordable = op_.deferrable && !fills &&
                          !has_any(kExported | kWithoutWords | kOtherIndex | kElsewhere) &&
                          !rebinds_twice() && !(op_.dynamic_with_mask && has(kMask));
  if (recordable) return DispatchMode::kTraced;
  // What only makes or fills memory that the window does not know can run before it.
  if (fills && op_.effects->known && !has(kInWindow) && !has(kExported))
    return DispatchMode::kUntraced;
  if (!op_.effects->known) warn_unknown_operator(op_);
  recorder_.sync(has(kExported) ? Flush{FlushReason::kExportedMemory} : Flush::by(op_));
  return DispatchMode::kUntraced;
}

void InspectedArguments::heal(LazyTensorImpl& impl) {
  healed_error_ = impl.state().error;
  if (impl.heal_if_overwritten()) healed_ = &impl;
}

void InspectedArguments::poison_again() {
  if (healed_) healed_->state().error = healed_error_;
}

// An argument may be given twice. Where one of the two is resized or moved, only running it shows
// what the other becomes.
bool InspectedArguments::rebinds_twice() const {
  if (!op_.may_rebind) return false;
  for (size_t i = 0; i < tensors_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tensors_[i] && tensors_[i] == tensors_[j]) return true;
  return false;
}

}  // namespace torch_lazy
