#include "device/inspected_arguments.h"

#include <ATen/core/enum_tag.h>

#include "device/fallback_warning.h"
#include "device/index_bounds.h"

namespace torch_lazy {
namespace {

bool is_mask(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Bool || dtype == c10::ScalarType::Byte;
}

}  // namespace

void InspectedArguments::inspect(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  LazyTensorImpl* impl = lazy_impl(tensor);
  if (!impl) [[unlikely]]
    return inspect_other(tensor);
  tensors_.push_back(impl);
  StorageState& state = impl->state();
  if (state.error && tensors_.size() == 1 && op_.effects->overwrites_first_argument) [[unlikely]]
    heal(*impl);
  else if (healed_ && &state == &healed_->state()) [[unlikely]]
    std::rethrow_exception(*healed_error_);  // what is to be overwritten is read, too
  recorder_.resolve(impl->binding, state, [&] {
    return !op_.effects->known || op_.effects->arguments[starts_.size() - 1].writes;
  });
  see(impl->device().index());
  note(kExported, state.exported);
  note(kInWindow, recorder_.binds(state));
}

void InspectedArguments::inspect_other(const at::Tensor& tensor) {
  note(kOtherTensor, true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
  tensors_.push_back(nullptr);
  if (op_.index_rule != IndexRule::kNone && tensor.is_cpu())
    on_the_host_.emplace_back(tensors_.size() - 1, tensor);
  note(kFakeTensor, tensor.key_set().has_backend(c10::BackendComponent::LazyBit));
}

void InspectedArguments::inspect(const c10::List<std::optional<at::Tensor>>& tensors) {
  for (size_t place = 0; place < tensors.size(); ++place) {
    const std::optional<at::Tensor> tensor = tensors[place];
    const size_t before = tensors_.size();
    if (tensor && tensor->defined()) note(kMask, is_mask(tensor->scalar_type()));
    inspect(tensor);
    if (tensors_.size() > before) places_.push_back(uint8_t(place));
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
  } else if (value.isNone()) {
    add_to_hash(kNone);
  } else if (value.isUnsigned() && !value.isInt()) {
    note(kWithoutWords, true);  // beyond int64
  } else if (value.isInt()) {
    inspect(value.toInt());
  } else if (value.isScalar()) {
    inspect(value.toScalar());
  }
}

DispatchMode InspectedArguments::dispatch_mode() {
  if (has(kFakeTensor)) return DispatchMode::kMeta;
  const bool fills = op_.random || op_.uninitialized || has(kGenerator);
  const bool recordable =
      op_.deferrable && !fills && !has_any(kExported | kWithoutWords | kOtherIndex | kElsewhere) &&
      !(op_.may_rebind && rebinds_twice()) && !(op_.dynamic_with_mask && has(kMask));
  if (recordable && recorder_.bypasses(op_, [&] { return elements(); }))
    return DispatchMode::kUntraced;
  const bool raises = op_.index_rule != IndexRule::kNone && recordable && index_out_of_range();
  if (recordable && !raises)
    return op_.picks_part && is_moving_view() ? DispatchMode::kUntraced : DispatchMode::kTraced;
  // What only makes or fills memory that the window does not know can run before it.
  const bool may_run_before = fills && op_.effects->known && !has(kExported);
  if (may_run_before && !has(kInWindow)) return DispatchMode::kUntraced;
  if (!op_.effects->known) warn_unknown_operator(op_);
  recorder_.sync(has(kExported) ? Flush{FlushReason::kExportedMemory} : Flush::by(op_),
                 /*always=*/!may_run_before);
  return DispatchMode::kUntraced;
}

size_t InspectedArguments::elements() const {
  size_t elements = 0;
  for (const LazyTensorImpl* const tensor : tensors_)
    if (tensor) elements += size_t(tensor->numel());
  return elements;
}

// A storage that is resized by a deferred operation has its new memory only when that has run:
// until then its size is not that of its memory.
bool InspectedArguments::is_moving_view() const {
  if (!tensors_[0]) return false;
  const LazyTensorImpl& viewed = *tensors_[0];
  StorageState& state = viewed.state();
  return recorder_.makes_view_at_call(state, integers_) &&
         viewed.lazy_storage().nbytes() == state.buffer.nbytes();
}

template <class Visit>
void InspectedArguments::for_each_written(const Visit& visit) const {
  for (size_t i = 0; i < starts_.size(); ++i) {
    if (!op_.effects->arguments[i].writes) continue;
    const size_t end = i + 1 < starts_.size() ? starts_[i + 1] : tensors_.size();
    for (size_t j = starts_[i]; j < end; ++j)
      if (tensors_[j]) visit(tensors_[j]->state());
  }
}

void InspectedArguments::fix_offsets(OpenOperation& operation) const {
  if (op_.offsets == OffsetNeed::kOfAll) {
    for (const LazyTensorImpl* const tensor : tensors_)
      if (tensor) operation.fix_offsets(tensor->state(), OffsetKind::kAbsolute);
  }
  const OffsetKind kind =
      op_.offsets == OffsetNeed::kRelative ? OffsetKind::kRelative : OffsetKind::kAbsolute;
  for_each_written([&](StorageState& state) { operation.fix_offsets(state, kind); });
}

void InspectedArguments::settle_writes(OpenOperation& operation) const {
  for_each_written([&](StorageState& state) { operation.writes(state); });
}

void InspectedArguments::note_pending_writes() const {
  for_each_written([](StorageState& state) { state.written_in = state.window; });
}

std::optional<IndexRange> InspectedArguments::range_of(int64_t dim, bool or_from_end) const {
  const LazyTensorImpl& indexed = *tensors_[0];
  const int64_t dims = std::max<int64_t>(indexed.dim(), 1);
  if (dim < -dims || dim >= dims) return std::nullopt;
  const int64_t size = indexed.dim() == 0 ? 1 : indexed.size(dim);
  return IndexRange{or_from_end ? -size : 0, size, std::nullopt};
}

// An index is known where its memory holds its value: where the window makes or writes it, that is
// pending.
bool InspectedArguments::known_outside(size_t tensor, const IndexRange& range) const {
  if (LazyTensorImpl* const index = tensors_[tensor]) {
    StorageState& state = index->state();
    const bool stale = recorder_.binds(state) && state.written_in == state.window;
    if (!state.resident() || stale || index->is_within(range)) return false;
    if (!all_within(index->resident_inner(), range)) return true;
    if (!range.ignored) index->note_within(range);
    return false;
  }
  for (const auto& [place, index] : on_the_host_)
    if (place == tensor) return !all_within(index, range);
  return false;
}

// An operation that runs at the call raises by itself.
bool InspectedArguments::index_out_of_range() const {
  // A mask among the indices takes as many dimensions as it has.
  const size_t tensors = op_.index_rule == IndexRule::kOwnElements ? 1 : 2;
  if (recorder_.is_eager() || !execution_device().is_cpu() || tensors_.size() < tensors ||
      has(kMask))
    return false;
  if (!tensors_[0]) return false;
  const auto outside = [&](size_t tensor, int64_t dim, bool or_from_end) {
    const std::optional<IndexRange> range = range_of(dim, or_from_end);
    return range && known_outside(tensor, *range);
  };
  switch (op_.index_rule) {
    case IndexRule::kRows:
      return outside(1, 0, false);
    case IndexRule::kDimension:
      return first_integer_ && outside(1, *first_integer_, false);
    case IndexRule::kDimensionOrFromEnd:
      return first_integer_ && outside(1, *first_integer_, true);
    case IndexRule::kEachDimension:
      for (size_t i = 0; i < places_.size(); ++i)
        if (outside(1 + i, places_[i], true)) return true;
      return false;
    case IndexRule::kElements: {
      const int64_t count = tensors_[0]->numel();
      return known_outside(1, {-count, count, std::nullopt});
    }
    case IndexRule::kOwnElements:
      return first_integer_ && known_outside(0, {0, *first_integer_, std::nullopt});
    case IndexRule::kClasses: {
      std::optional<IndexRange> classes = range_of(tensors_[0]->dim() > 1 ? 1 : 0, false);
      classes->ignored = last_integer_;
      return known_outside(1, *classes);
    }
    case IndexRule::kNone:
      return false;
  }
  return false;
}

void InspectedArguments::heal(LazyTensorImpl& impl) {
  healed_error_ = impl.state().error;
  if (impl.heal_if_overwritten()) healed_ = &impl;
}

void InspectedArguments::poison_again() {
  if (healed_) healed_->state().error = healed_error_;
}

// An argument may be given twice. Where one of the two is resized or moved, only running it shows
// what the other becomes, unless that is read before anything is written.
bool InspectedArguments::rebinds_twice() const {
  // Beside out= arguments, which come last, what is only read may be given twice. An operand of a
  // pointwise operator may be its out= too; a reduction or a product may have resized or cleared
  // what it then reads.
  const auto may_be_rebound = [&](size_t tensor) {
    const auto& arguments = op_.handle.schema().arguments();
    const auto out = std::ranges::find_if(arguments, &c10::Argument::is_out);
    return out == arguments.end() || tensor >= start(size_t(out - arguments.begin()));
  };
  const auto is_read_first = [&](size_t tensor) {
    return !may_be_rebound(tensor) && op_.handle.hasTag(at::Tag::pointwise);
  };
  for (size_t i = 0; i < tensors_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tensors_[i] && tensors_[i] == tensors_[j] && may_be_rebound(i) && !is_read_first(j))
        return true;
  return false;
}

}  // namespace torch_lazy
