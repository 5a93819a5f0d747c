#include "trace/open_operation.h"

#include <torch/csrc/autograd/graph_task.h>

#include "profile/range.h"
#include "tape/operation_location.h"
#include "trace/debug.h"
#include "trace/snapshot.h"

namespace torch_lazy {
OpenOperation::OpenOperation(Recorder& recorder, const OperatorInfo& op, c10::DeviceIndex device)
    : recorder_(recorder), op_(op) {
  count(recorder.counters_.recorded);
  const bool backward = torch::autograd::get_current_graph_task_id() != -1;
  // Before the lock, since these may run windows and take the GIL.
  if (backward)
    recorder.backward_streams_.begin_operation();
  else
    recorder.backward_streams_.begin_operation_behind();
  location_ = current_operation_location(backward);
  lock_ = recorder.prepare_window(backward, device);
  inputs_before_ = window().inputs();
  window().tape().begin(&op, location_);
}

void OpenOperation::end_early() noexcept {
  if (deferred()) return end();
  if (!lock_.owns_lock()) lock_ = RecordingGuard(recording_lock());
  window().tape().abandon();
  window().drop_inputs(inputs_before_);
  // The slots given to its arguments are described nowhere now: start afresh.
  recorder_.close(lock_, {FlushReason::kOperationRaised});
}

// ---------------------------------------------------------------- arguments

bool OpenOperation::input(ValueBinding& binding, StorageState& storage, const c10::TensorImpl& impl,
                          int64_t storage_bytes, uint8_t flags) {
  using Binding = Recorder::Binding;
  Window& window = this->window();
  if (const auto known = window.shared_value(impl, storage)) [[unlikely]] {
    word(make_word(Tag::kValue, *known, 0, flags));
    return false;
  }
  const ValueBinding value = window.new_value();
  const bool first = !window.binds(storage);
  Binding bound = !first && window.shares(storage) ? Binding::kShared : Binding::kOwn;
  uint32_t slot = window.slot_of(storage);
  if (first) {
    const RecordingGuard lock = lock_ ? RecordingGuard() : RecordingGuard(recording_lock());
    bound = recorder_.take_over(storage, others_);
    if (bound == Binding::kOwn) [[likely]]
      slot = window.bind_storage(storage, storage_bytes, false, 0);
    else if (bound == Binding::kShared)
      slot = window.share_storage(storage, impl, storage_bytes);
    else
      slot = window.describe_foreign_storage(storage_bytes);
  }
  if (bound == Binding::kOwn) [[likely]]
    binding = value;
  else if (bound == Binding::kShared)
    window.name_shared_value(impl, storage, value.slot);
  word(make_word(Tag::kInput, value.slot, 0, flags));
  const InputOffset offset =
      window.describe_offset(slot, impl.storage_offset() * int64_t(impl.itemsize()));
  window.tape().tensor_metadata(impl, slot, first, offset,
                                offset.kind == OffsetKind::kAbsolute ? storage_bytes : 0);
  return window.mode() == Window::Mode::kDeferring;
}

void OpenOperation::cpu_tensor(const at::Tensor& tensor) {
  Window& window = this->window();
  // Some operators refuse one that is not contiguous, which its snapshot may be.
  word(make_word(Tag::kCpuTensor, window.new_value().slot, !tensor.is_contiguous()));
  window.tape().snapshot_metadata(tensor.sizes(), snapshot_strides(tensor), tensor.scalar_type());
  if (window.mode() == Window::Mode::kDeferring) window.add_snapshot(tensor);
}

void OpenOperation::write_shared(StorageState& storage) {
  Window& window = this->window();
  const RecordingGuard lock = lock_ ? RecordingGuard() : RecordingGuard(recording_lock());
  const size_t before = others_.size();
  recorder_.add_conflicting(storage, /*writes=*/true, others_);
  if (others_.size() > before || window.mode() != Window::Mode::kDeferring ||
      !window.shares(storage))
    return;
  recorder_.take_over(storage, others_);  // from an eager window; no other is in the way
  window.own_shared(storage);
}

bool OpenOperation::match() {
  if (window().mode() == Window::Mode::kDeferring) {
    if (others_.empty() && recorder_.matcher_.match(window().tape())) {
      count(recorder_.counters_.deferred);
      state_ = State::kDeferred;
      return true;
    }
    recorder_.fail_guard(lock_, /*because_of_another_thread=*/!others_.empty());
  }
  if (lock_) lock_.unlock();
  for (Recorder* const other : others_) other->flush_for_another({FlushReason::kOtherThread});
  count(recorder_.counters_.eager);
  return false;
}

// ---------------------------------------------------------------- outputs

void OpenOperation::bind_output(const OutputHeader& output, ValueBinding& binding,
                                StorageState& storage) {
  using Kind = OutputMetadata::Kind;
  if (output.kind == Kind::kUndefined || output.kind == Kind::kArgument) return;
  binding = window().new_value();
  if (output.kind == Kind::kFresh)
    window().bind_storage(storage, output.storage_bytes, true, binding.slot);
}

void OpenOperation::argument_output(uint32_t source) {
  OutputMetadata output;
  output.kind = OutputMetadata::Kind::kArgument;
  output.source = source;
  window().tape().output(output);
}

void OpenOperation::output(OutputMetadata::Kind kind, uint32_t source, const c10::TensorImpl& impl,
                           int64_t offset, int64_t storage_bytes, uint8_t flags,
                           ValueBinding& binding, StorageState& storage) {
  Window& window = this->window();
  binding = window.new_value();
  if (kind == OutputMetadata::Kind::kFresh)
    window.bind_storage(storage, storage_bytes, true, binding.slot);
  else if (!window.binds(storage))
    window.invalidate_slots();
  window.tape().output(kind, source, impl, offset, storage_bytes, flags, binding.slot,
                       window.slot_of(storage));
}

void OpenOperation::end() {
  const bool deferred = this->deferred();
  state_ = State::kEnded;
  Tape& tape = window().tape();
  if (deferred) {
    tape.copy_outputs(recorder_.matcher_.output_words());
    tape.warned(recorder_.matcher_.warnings());
  }
  tape.end();
  if (!deferred) recorder_.period_.push(op_.id);
  if (deferred && tape.size() >= recorder_.next_look_) [[unlikely]]
    recorder_.look_at_device(lock_);
  recorder_.flush_if_due(lock_, deferred);
  lock_.unlock();
  if (deferred && window().is_watched()) [[unlikely]]
    mark_deferred();
  debug_operation(op_, location_, deferred);
}

}  // namespace torch_lazy
