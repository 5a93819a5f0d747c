// The recorder of one thread: joins its open window, the matcher and the learner, and decides where
// windows begin and end.
//
// Cold or warm, an operation runs at the call (device/ does that) and its call and outputs are
// appended to the tape, where that pays (trace/bypass.h). While everything since the last flush has
// matched a known trace the window is *deferring*: operations are compared, not run, and their
// outputs are pending storages. A flush ends the window: a deferring one runs, every one is
// recorded in the trace profile.
//
// Threads: a recorder belongs to one thread at a time, but another thread that touches a storage
// pending here runs the window in its stead. See recording_lock.h for what the lock guards.
#pragma once

#include <c10/util/SmallVector.h>

#include <exception>
#include <memory>
#include <optional>

#include "base/api.h"
#include "base/config.h"
#include "base/metrics.h"
#include "trace/backward_streams.h"
#include "trace/bypass.h"
#include "trace/flush_reason.h"
#include "trace/global_state.h"
#include "trace/learner.h"
#include "trace/matcher.h"
#include "trace/period.h"
#include "trace/recording_lock.h"
#include "trace/storage_state.h"
#include "trace/window.h"
#include "trace/window_history.h"

namespace torch_lazy {

class Recorder {
 public:
  // The calling thread's.
  static Recorder& current() { return of_thread_ ? *of_thread_ : lease_for_thread(); }

  // Before an operation: raises the error of a poisoned storage, runs other threads' windows that
  // have deferred a write to the storage, or a read where the operation writes, and flushes where
  // the value cannot be named on the tape.
  void resolve(const ValueBinding& binding, StorageState& storage) {
    resolve(binding, storage, [] { return true; });
  }
  // `writes()`: whether the operation writes the storage. Asked only where that matters.
  template <class Writes>
  void resolve(const ValueBinding& binding, StorageState& storage, const Writes& writes) {
    const Recorder* const other = storage.recorder.load(std::memory_order_acquire);
    const bool own = !other || other == this;
    const bool named = storage.resident() || binding.window == window_.serial();
    const bool shared = storage.readers.load(std::memory_order_acquire) != 0;
    if (!own || shared || !named || storage.error) [[unlikely]]
      resolve_unusual(binding, storage, writes());
  }
  // The window that is open now has the storage: bound, or shared with the one that has bound it.
  // Not for who holds the lock.
  bool binds(StorageState& storage) const {
    if (storage.window == window_.serial()) return true;
    if (storage.readers.load(std::memory_order_acquire) == 0) return false;
    const RecordingGuard lock(recording_lock());  // another thread may close the window
    return window_.shares(storage);
  }
  // The window that is open now has put off a write to the storage.
  bool defers_write(const StorageState& storage) const { return window_.defers_write(storage); }
  // Whether a view of a storage, of the part that `bounds` stands for, is made at the call and not
  // recorded, see ViewHistory. What the window makes itself has no memory where it is deferred.
  bool makes_view_at_call(StorageState& storage, uint64_t bounds) {
    return storage.resident() && !window_.makes(storage) &&
           storage.views.moves(window_.serial(), bounds);
  }
  // Whether an operation that can be recorded is not to be, see Bypass. Asked once for each, before
  // anything else is done about it: backward may have ended before it, which is a border.
  // `elements()`: of its arguments; asked only where that matters.
  template <class Elements>
  bool bypasses(const OperatorInfo& op, const Elements& elements) {
    if (backward_ && !is_in_backward()) [[unlikely]]
      end_backward();
    if (!bypass_.is_on() || window_.mode() != Window::Mode::kClosed) [[likely]]
      return false;
    return bypasses_with(op, elements());
  }
  // An open window that runs its operations at the call.
  bool is_eager() const { return window_.mode() == Window::Mode::kEager; }

  // Runs what is pending and raises an error that a deferred operation left. `always`: whether this
  // is a sync point where nothing is pending, too.
  void sync(Flush flush, bool always = true);
  // Runs what is pending; an error stays for the next sync.
  void flush(Flush flush);
  // Runs this window in its owner's stead, if it is on one of the streams where these are given; an
  // error stays for the owner's next sync.
  void flush_for_another(Flush flush, std::optional<c10::ArrayRef<c10::Stream>> streams = {});

  // The storage dies: it is no longer an output of its window, and windows that read it keep its
  // memory from now on.
  static void forget(StorageState& storage) noexcept;
  // Whether operations of the calling thread may be deferred. Where they may not, they run at the
  // call and nothing is learnt. Runs what is pending; returns what was set before.
  TORCH_LAZY_MODULE_API static bool set_deferring(bool deferring);
  // The calling thread captures a CUDA graph, or does so no longer. What is pending runs before.
  // What would be recorded meanwhile raises: the device is given it later, when nothing captures
  // it.
  TORCH_LAZY_MODULE_API static void set_capturing(bool capturing);
  // Runs the pending windows of all threads; raises this thread's error.
  TORCH_LAZY_MODULE_API static void synchronize_all();
  // Of those on these streams, of the device where lazy tensors live.
  static void synchronize_streams(c10::ArrayRef<c10::Stream> streams);
  // The process ends: pending work has no observer left.
  TORCH_LAZY_MODULE_API static void discard_all() noexcept;
  static void before_fork();
  static void after_fork(bool child);

 private:
  friend class OpenOperation;
  friend struct RecorderPool;

  Recorder();
  static Recorder& lease_for_thread();
  // Another thread has the recorder from now on.
  void begin_thread();
  WindowState record_profile(std::optional<FlushReason> automatic) {
    if (!deferring_) return WindowState::kCold;
    return learner_of_window_->record_profile(window_, automatic);
  }
  bool bypasses_with(const OperatorInfo& op, size_t elements);
  static bool is_in_backward();
  void end_backward();
  using Others = c10::SmallVector<Recorder*, 1>;
  void resolve_unusual(const ValueBinding& binding, StorageState& storage, bool writes);
  // Adds the recorders of other threads that have to run before one that reads or writes the
  // storage. The lock is held.
  void add_conflicting(StorageState& storage, bool writes, Others& others) const;
  // The open operation is about to bind the storage; the lock is held. Says how, after it has added
  // to `others` whose windows have to run first: other threads may have recorded since resolve().
  enum class Binding : uint8_t { kOwn, kShared, kForeign };
  Binding take_over(StorageState& storage, Others& others);

  // --- For the open operation

  // The window is the next operation's: flushes at borders (the global state, the device or the
  // stream changed), raises an error left by a flush, opens a window where none is. Returns the
  // lock, or none where the window was eager already: nothing is pending then, and no other thread
  // has business here.
  RecordingGuard prepare_window(bool backward, c10::DeviceIndex device) {
    const bool same_state = GlobalState::current().version == state_version_;
    const bool same_place = window_.takes(device);
    backward_ = backward;
    if (window_.mode() == Window::Mode::kEager && same_state && same_place && !error_) return {};
    return prepare_another_window(same_state, device);
  }
  RecordingGuard prepare_another_window(bool same_state, c10::DeviceIndex device);
  // The open operation does not follow the known traces, or another thread's window has to run
  // before it: those before it run operation by operation, and the window goes on eagerly. Releases
  // the lock; raises an error that was left.
  void fail_guard(RecordingGuard& lock, bool because_of_another_thread);
  // Operations were deferred: looks whether the device is idle and could begin with the window, and
  // says when to look again.
  void look_at_device(RecordingGuard& lock);
  // An operation was added: flushes where the window has reached its period, a seam or a limit.
  void flush_if_due(RecordingGuard& lock, bool deferred) {
    if (const auto reason = due(deferred)) [[unlikely]]
      close(lock, {*reason});
  }
  std::optional<FlushReason> due(bool deferred) {
    if (const auto reason = deferred ? deferred_end() : eager_end()) return reason;
    if (int64_t(window_.tape().size()) >=
        config().window_operations.load(std::memory_order_relaxed))
      return FlushReason::kOperationsLimit;
    if (window_.holds_too_much()) return FlushReason::kBytesLimit;
    return std::nullopt;
  }

  std::optional<FlushReason> eager_end() {
    if (period_.at_boundary()) return FlushReason::kPeriod;
    return deferring_ ? learner_of_window_->at_seam(window_) : std::nullopt;
  }
  std::optional<FlushReason> deferred_end() {
    const auto reason = matcher_.must_flush(window_.tape());
    return reason && learner_of_window_->ends_there(window_, *reason) ? reason : std::nullopt;
  }

  // --- Ends of windows; the lock is held, and released while the window runs

  void close(RecordingGuard& lock, Flush flush);
  struct Finished {
    WindowState state;
    // By which it ran.
    std::shared_ptr<CompiledTrace> trace = nullptr;
    std::shared_ptr<const CompiledTrace::Version> version = nullptr;
  };
  Finished finish_window(RecordingGuard& lock, Flush flush);
  void keep_error(std::exception_ptr error) {
    if (error) error_ = std::move(error);
  }
  [[noreturn]] void raise_error(RecordingGuard& lock);

  // The calling thread's, once it has one. See GlobalState for the model.
#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local Recorder* of_thread_ = nullptr;

  Window window_;
  Matcher matcher_;              // of a deferring window
  WindowHistory history_;        // on a device that may begin early
  size_t next_look_ = SIZE_MAX;  // at its device, when it has so many operations
  Learner learner_{Learner::Mode::kShared};
  Learner deterministic_learner_{Learner::Mode::kDeterministic};
  Learner* learner_of_window_ = &learner_;  // of the open one, or the one before
  bool deferring_ = true;                   // see set_deferring()
  bool capturing_ = false;                  // see set_capturing()
  PeriodDetector period_;                   // fed with eager windows
  Bypass bypass_;                           // touched by the thread alone that records
  bool backward_ = false;                   // at the last operation
  BackwardStreams backward_streams_;
  uint32_t state_version_ = 0;  // when the window was opened, see GlobalState::Versioned
  std::exception_ptr error_;    // left by a deferred operation, raised at the next sync
  Metrics::OfThread& counters_ = metrics().of_new_thread();
  RecentCounters windows_{metrics().windows}, flushes_{metrics().flushes}, syncs_{metrics().syncs};
};

}  // namespace torch_lazy
