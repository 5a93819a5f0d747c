// The open window of a recorder: what was recorded since the last flush, and how it runs.
//
// Another thread that needs a storage pending here runs the window in its owner's stead, so the
// recording lock guards all of it while it is deferring. An eager window has nothing pending: other
// threads leave it alone, and its owner records without the lock.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "backend/execution_device.h"
#include "runtime/compiled_trace.h"
#include "tape/input_offsets.h"
#include "tape/tape.h"
#include "trace/early_run.h"
#include "trace/global_state.h"
#include "trace/recording_lock.h"
#include "trace/shared_inputs.h"
#include "trace/storage_state.h"

namespace torch_lazy {

// What holds where a window begins, and chooses among the known traces.
struct TraceKey {
  GlobalState state;
  bool backward = false;
  c10::DeviceIndex device = 0;  // of lazy:N; a window is one device's
  bool operator<(const TraceKey& other) const {
    // GlobalState is plain data without padding.
    const int order = std::memcmp(&state, &other.state, sizeof state);
    if (order != 0) return order < 0;
    return std::tie(backward, device) < std::tie(other.backward, other.device);
  }
};

// A storage of the window, by slot.
struct BoundStorage {
  StorageState* owner;  // null once it died, or when it is another recorder's
  int64_t bytes;
  bool made;                 // made by an operation of this window, not an input
  uint32_t root = 0;         // of one that was made: the value slot that came with it
  bool handed_over = false;  // another recorder's window owns it now, which knows when it dies
};

class Window {
 public:
  enum class Mode : uint8_t {
    kClosed,     // there is no window
    kEager,      // operations run at the call and are recorded
    kDeferring,  // operations follow a known trace: they are compared, not run
  };

  explicit Window(Recorder& owner) : owner_(owner), serial_(next_serial()) {}

  // --- One window after the other

  void open(const TraceKey& key, Mode mode);
  // Forgets all; the next window has another serial number. Releases the lock while inputs are
  // freed: memory from outside may need the GIL.
  void close(RecordingGuard& lock);
  // The guard of an operation failed: it and what follows run at the call. `after`: operations that
  // were deferred before it.
  void stop_deferring(size_t after) {
    mode_ = Mode::kEager;
    guard_failed_ = after > 0;
  }

  // May be read without the lock, to see whether the window is another thread's business.
  Mode mode() const { return mode_; }
  bool guard_failed() const { return guard_failed_; }
  uint64_t serial() const { return serial_; }
  const TraceKey& key() const { return key_; }
  // Whether an operation on that device, submitted now, belongs into it: the current stream is the
  // one that it was opened on.
  bool takes(c10::DeviceIndex device) const {
    return key_.device == device && (!stream_ || *stream_ == current_stream(device));
  }
  // On one of these, of the device where lazy tensors live.
  bool runs_on(c10::ArrayRef<c10::Stream> streams) const {
    return stream_ && std::find(streams.begin(), streams.end(), *stream_) != streams.end();
  }
  // Where its tensors live.
  c10::Device device() const { return execution_device().device(key_.device); }
  std::chrono::steady_clock::time_point opened() const { return opened_; }
  std::chrono::nanoseconds age() const { return std::chrono::steady_clock::now() - opened_; }
  Tape& tape() { return tape_; }
  const Tape& tape() const { return tape_; }
  // Whether PyTorch's profiler was on when it was opened. Read by its owner only.
  bool is_watched() const { return watched_; }

  // --- What is bound in it

  bool binds(StorageState& storage) const { return storage.window == serial_ || shares(storage); }
  // It reads a storage that a window of another thread has bound.
  bool shares(StorageState& storage) const {
    return !shared_.empty() && shared_.slot_of(storage).has_value();
  }
  // Of a storage that it binds.
  uint32_t slot_of(StorageState& storage) const {
    if (shared_.empty()) [[likely]]
      return storage.slot;
    return shared_.slot_of(storage).value_or(storage.slot);
  }
  // It has deferred a write to the storage.
  bool defers_write(const StorageState& storage) const {
    return mode_ == Mode::kDeferring && storage.written_in == serial_;
  }
  // The storage is no input but made by one of its operations.
  bool makes(const StorageState& storage) const {
    return storage.window == serial_ && storage.slot < storages_.size() &&
           storages_[storage.slot].made;
  }
  ValueBinding new_value() { return {serial_, tape_.values++}; }
  // Gives the storage the next slot, and returns it. The lock is held.
  uint32_t bind_storage(StorageState& storage, int64_t bytes, bool made, uint32_t root);
  // The next slot for a storage on which the window of another recorder has deferred work, which
  // keeps it bound and runs before the open operation.
  uint32_t describe_foreign_storage(int64_t bytes) {
    invalidate_slots();
    return add_slot({nullptr, bytes, false});
  }
  // The next slot for a storage that the window of another recorder has bound and only reads, as
  // this one does. The lock is held. `tensor` lies on the storage.
  uint32_t share_storage(StorageState& storage, const c10::TensorImpl& tensor, int64_t bytes);
  // It writes the storage, which no other window reads any more, and is to own it.
  void own_shared(StorageState& storage);
  std::optional<uint32_t> shared_value(const c10::TensorImpl& tensor, StorageState& storage) const {
    if (shared_.empty()) [[likely]]
      return std::nullopt;
    return shared_.value_of(tensor, storage);
  }
  void name_shared_value(const c10::TensorImpl& tensor, const StorageState& storage,
                         uint32_t value) {
    shared_.add_value(tensor, storage, value);
  }
  // The storage dies: it is no longer an output.
  void unbind(StorageState& storage) noexcept;
  // A storage that this window shares dies: its memory is kept as an input.
  void keep_shared(StorageState& storage) noexcept {
    if (shares(storage)) add_dead(storages_[slot_of(storage)].bytes);
  }
  // A window of another recorder defers work on the storage and is to own it. This one is eager.
  void hand_over(StorageState& storage) noexcept;
  // How the tape describes where the next input over a storage of that slot lies; offset in bytes.
  // A slot that another thread has overwritten makes no trace, see invalidate_slots().
  InputOffset describe_offset(uint32_t slot, int64_t offset) {
    if (slot >= storages_.size()) return {OffsetKind::kAbsolute, offset};
    return input_offsets_.describe(slot, offset);
  }
  // Tells the tape, where it has not been told, where the inputs over the storage lie.
  void fix_offsets(uint32_t slot, OffsetKind kind) {
    if (slot >= storages_.size()) return;
    if (const auto known = input_offsets_.fix(slot, kind, storages_[slot].bytes)) [[unlikely]]
      tape_.offsets(*known);
  }
  // By storage slot: made here, and not dead.
  std::vector<bool> live() const;

  // Another thread has bound a storage in between: the tape is not what the program did.
  void invalidate_slots() { slots_valid_ = false; }
  bool slots_valid() const { return slots_valid_; }

  // Inputs of a deferring window, in the order in which they appear on the tape.
  void add_input(at::Tensor tensor) { inputs_.push_back(std::move(tensor)); }
  void add_snapshot(const at::Tensor& cpu_tensor);
  size_t inputs() const { return inputs_.size(); }
  void drop_inputs(size_t kept);
  // A deferring window keeps more alive than it may, see held_memory.h.
  bool holds_too_much() {
    if (held_bytes_ <= most_held_bytes_ && dead_bytes_ <= most_dead_bytes_) [[likely]]
      return false;
    return mode_ == Mode::kDeferring && is_beyond_limits();
  }

  // --- Running it. The lock is released meanwhile and running() keeps other threads out. Pending
  // storages get their memory. Returned is the error of an operation that failed: what it and those
  // behind it would have made or changed is poisoned then, see poison().

  [[nodiscard]] std::exception_ptr run(RecordingGuard& lock, const CompiledTrace::Version& version,
                                       bool profiled);
  // The first `operations` of the tape through ATen. `executable_failure`: of the executable that
  // they run instead of, if there is one; told as a fallback where they succeed.
  [[nodiscard]] std::exception_ptr run_by_operation(
      RecordingGuard& lock, size_t operations, bool profiled,
      const std::exception_ptr& executable_failure = {});
  void wait_until_idle(RecordingGuard& lock);
  // Lets its device do what it can already do of the version that the window is likely to be, see
  // EarlyRun: where that guess is not trusted, from when it is idle. Returns what the device said
  // was wrong with earlier work.
  [[nodiscard]] std::exception_ptr run_early(
      RecordingGuard& lock, const std::shared_ptr<const CompiledTrace::Version>& version,
      bool trusted);
  // Whether the version that was last asked for can be run early.
  bool runs_early() const { return early_ != nullptr; }
  // The device began with another window than this one became.
  bool was_guessed_wrong() const { return guessed_wrong_; }
  // In a child of a fork, where the thread that ran the window is not: what the run was to make or
  // write is not known and is poisoned. Returns the error; null where nothing was running.
  [[nodiscard]] std::exception_ptr lose_run();
  // In a child of a fork: the threads that waited for a run are not there.
  static void forget_waiters();

 private:
  static uint64_t next_serial();
  static c10::Stream current_stream(c10::DeviceIndex device);
  // What has been done of a run that failed: the operations before the failing one, or others too.
  enum class Ran : uint8_t { kInOrder, kInAnyOrder };
  [[nodiscard]] std::exception_ptr finish_run(const RunResult& result, Ran ran,
                                              c10::ArrayRef<uint32_t> output_storages,
                                              size_t operations);
  std::exception_ptr poison(const RunFailure& failure, Ran ran, size_t operations);
  RunResult run_version(const CompiledTrace::Version& version, c10::ArrayRef<at::Tensor> inputs);
  void drop_early_run();
  // `told`: what the device says went wrong before.
  bool is_device_idle(std::exception_ptr& told) const;

  uint32_t add_slot(const BoundStorage& storage) {
    storages_.push_back(storage);
    input_offsets_.add_storage(storage.made);
    return tape_.storages++;
  }
  void add_dead(int64_t bytes) {
    held_bytes_ += bytes;
    dead_bytes_ += bytes;
  }
  bool is_beyond_limits();
  // Of a storage that it owns; null where it does not.
  BoundStorage* owned(const StorageState& storage) noexcept;

  Recorder& owner_;
  std::atomic<Mode> mode_{Mode::kClosed};
  bool watched_ = false;
  bool running_ = false;  // some thread runs this window; guarded by the lock
  bool guard_failed_ = false;
  bool slots_valid_ = true;
  bool guessed_wrong_ = false;
  uint64_t serial_;  // unique over all recorders
  TraceKey key_;
  std::optional<c10::Stream> stream_;  // on which it runs; none on the CPU
  std::chrono::steady_clock::time_point opened_;
  Tape tape_;
  std::vector<BoundStorage> storages_;
  InputOffsets input_offsets_;  // by storage slot
  SharedInputs shared_;
  std::vector<at::Tensor> inputs_;
  std::unique_ptr<EarlyRun> early_;
  EarlyThread* early_thread_ = nullptr;  // made for the first of them, and never destroyed
  // What is pending and what is dead and kept; of these, what is dead.
  int64_t held_bytes_ = 0, most_held_bytes_ = 0;
  int64_t dead_bytes_ = 0, most_dead_bytes_ = 0;
};

inline uint32_t Window::share_storage(StorageState& storage, const c10::TensorImpl& tensor,
                                      int64_t bytes) {
  const uint32_t slot = add_slot({nullptr, bytes, false});
  shared_.add(storage, *tensor.unsafe_storage().unsafeGetStorageImpl(), slot);
  return slot;
}

inline void Window::own_shared(StorageState& storage) {
  const uint32_t slot = slot_of(storage);
  shared_.remove(storage);
  storage.window = serial_;
  storage.slot = slot;
  storage.recorder.store(&owner_, std::memory_order_release);
  storages_[slot].owner = &storage;
}

inline uint32_t Window::bind_storage(StorageState& storage, int64_t bytes, bool made,
                                     uint32_t root) {
  storage.window = serial_;
  StorageState* owner = nullptr;
  if ((made || mode_ == Mode::kDeferring) && !storage.recorder.load(std::memory_order_relaxed)) {
    storage.recorder.store(&owner_, std::memory_order_release);
    owner = &storage;
  }
  storage.slot = add_slot({owner, bytes, made, root});
  if (made) held_bytes_ += bytes;
  return storage.slot;
}

}  // namespace torch_lazy
