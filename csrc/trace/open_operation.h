// One operation that is being recorded: from its first argument word to its last output word.
//
//   OpenOperation operation(recorder, op);
//   word(), tensor() and the like for every argument, in order
//   if (operation.match())  // deferred: nothing runs
//     bind_output() for each of matched_outputs(), end()
//   else                    // the operation runs, without the lock
//     begin_outputs(), an output for every flattened tensor return, end()
//
// It holds the recording lock while arguments are compared and while outputs are bound: nothing
// there may take Python's GIL. An operation that is destroyed before its end() has raised: it is
// taken from the tape again.
#pragma once

#include <vector>

#include "ops/operator_info.h"
#include "trace/recorder.h"

namespace torch_lazy {

class OpenOperation {
 public:
  // May flush at a border, and raises an error that such a flush left.
  OpenOperation(Recorder& recorder, const OperatorInfo& op, c10::DeviceIndex device);
  ~OpenOperation() {
    if (state_ != State::kEnded) [[unlikely]]
      end_early();
  }
  OpenOperation(const OpenOperation&) = delete;
  OpenOperation& operator=(const OpenOperation&) = delete;

  const OperatorInfo& op() const { return op_; }
  // Of lazy:N, on which its results live.
  c10::DeviceIndex device_index() const { return window().key().device; }

  // --- Arguments
  void word(uint64_t value) { window().tape().word(value); }
  void string(std::string_view text) { window().tape().string(text); }
  // Returns whether the caller must hand over the tensor with bind_input().
  bool tensor(ValueBinding& binding, StorageState& storage, const c10::TensorImpl& impl,
              int64_t storage_bytes, uint8_t flags) {
    if (binding.window != window().serial())
      return input(binding, storage, impl, storage_bytes, flags);
    word(make_word(Tag::kValue, binding.slot, 0, flags));
    return false;
  }
  void bind_input(at::Tensor tensor) { window().add_input(std::move(tensor)); }
  // A CPU tensor; snapshotted when the operation may be deferred.
  void cpu_tensor(const at::Tensor& tensor);

  // Behind all arguments: the offsets of inputs over the storage matter from here on.
  void fix_offsets(StorageState& storage, OffsetKind kind) {
    if (window().binds(storage)) window().fix_offsets(window().slot_of(storage), kind);
  }
  // Behind all arguments: the operation writes the storage.
  void writes(StorageState& storage) {
    if (storage.readers.load(std::memory_order_acquire) != 0) [[unlikely]]
      write_shared(storage);
  }

  // True: the operation is deferred. False: run it now; the lock is released.
  bool match();

  // --- Outputs of a deferred operation
  bool deferred() const { return state_ == State::kDeferred; }
  c10::ArrayRef<KnownOutput> matched_outputs() const { return recorder_.matcher_.outputs(); }
  // What it warned of when the known trace was recorded.
  WarningsId matched_warnings() const { return recorder_.matcher_.warnings(); }
  void bind_output(const OutputHeader& output, ValueBinding& binding, StorageState& storage);

  // --- Outputs of one that ran
  void begin_outputs() { lock_ = RecordingGuard(recording_lock()); }
  // An output cannot be made: those before it are dropped, which takes the lock.
  void give_up_outputs() {
    if (lock_) lock_.unlock();
  }
  void warned(WarningsId warnings) { window().tape().warned(warnings); }
  void undefined_output() { window().tape().output({}); }
  void argument_output(uint32_t source);
  // `offset`: as of OutputMetadata.
  void output(OutputMetadata::Kind kind, uint32_t source, const c10::TensorImpl& impl,
              int64_t offset, int64_t storage_bytes, uint8_t flags, ValueBinding& binding,
              StorageState& storage);

  // All outputs are bound. May flush the window.
  void end();

 private:
  enum class State : uint8_t { kRecording, kDeferred, kEnded };

  Window& window() const { return recorder_.window_; }
  // The operation raised.
  void end_early() noexcept;
  bool input(ValueBinding& binding, StorageState& storage, const c10::TensorImpl& impl,
             int64_t storage_bytes, uint8_t flags);
  void write_shared(StorageState& storage);

  Recorder& recorder_;
  const OperatorInfo& op_;
  LocationId location_ = kNoLocation;
  State state_ = State::kRecording;
  size_t inputs_before_;  // inputs of the window when the operation began
  // Recorders of other threads whose windows have to run first: since its arguments were resolved
  // they have deferred a write to one, or a read of what it writes.
  Recorder::Others others_;
  RecordingGuard lock_;  // not held where the window was eager already, see prepare_window()
};

}  // namespace torch_lazy
