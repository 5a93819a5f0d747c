// The recorder of one thread: tapes operations, follows known traces, opens and closes windows.
//
// Cold or warm, an operation runs at the call (device/ does that) and its call and outputs are
// appended to the tape. While everything since the last cut has matched a known trace the recorder
// is *deferring*: operations are compared, not run, and their outputs are pending storages. A cut
// closes the window: a deferred one runs, every one is learnt from.
//
// Threads: a recorder belongs to one thread at a time, but another thread that touches a storage
// pending here runs the window in its stead. One lock for all recorders guards every window, every
// StorageState::recorder and the tables of owners. It is held for the bookkeeping of an operation
// only: never while kernels run, never while something can take Python's GIL.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/metrics.h"
#include "ops/operator_info.h"
#include "plan/step.h"
#include "tape/tape.h"
#include "trace/familiarity.h"
#include "trace/global_state.h"
#include "trace/known_traces.h"
#include "trace/period.h"
#include "trace/recording_lock.h"
#include "trace/storage_state.h"
#include "trace/trace_profile.h"

namespace torch_lazy {

class Recorder {
 public:
  // The calling thread's.
  static Recorder& current() { return of_thread_ ? *of_thread_ : lease_for_thread(); }

  // --- Before an operation: what must be settled before it can be recorded.

  // Raises the error of a poisoned storage, runs another thread's window that has deferred work on
  // the storage, and cuts where the value cannot be named on the tape.
  void settle(const ValueBinding& binding, StorageState& storage) {
    const Recorder* const other = storage.recorder.load(std::memory_order_acquire);
    const bool own = !other || other == this;
    const bool named = storage.resident() || binding.window == serial_;
    if (!own || !named || storage.error) [[unlikely]]
      settle_unusual(binding, storage);
  }
  // The storage is bound in the window that is open now.
  bool touches(const StorageState& storage) const { return storage.window == serial_; }

  // --- One operation: begin, its arguments, match, then outputs one way or the other.

  // Cuts at borders (backward, global state), raises an error left by such a cut. Takes the lock.
  void begin(const OperatorInfo& op);
  // Returns whether the caller must hand over the tensor with bind_input().
  bool tensor(ValueBinding& binding, StorageState& storage, const c10::TensorImpl& impl,
              int64_t storage_bytes, uint8_t flags) {
    if (binding.window != serial_) return input(binding, storage, impl, storage_bytes, flags);
    tape_.word(make_word(Tag::kValue, binding.slot, 0, flags));
    return false;
  }
  void bind_input(at::Tensor tensor) { inputs_.push_back(std::move(tensor)); }
  // A CPU tensor; snapshotted when the operation may be deferred.
  void cpu_tensor(const at::Tensor& tensor);
  // Everything else goes on the tape as words.
  Tape& tape() { return tape_; }
  // True: the operation is deferred. False: run it now; the lock is released.
  bool match();

  // Deferred: one call per output described by matched_outputs(), then end_deferred().
  const std::vector<OutputMetadata>& matched_outputs() const { return cursor_.outputs(); }
  void bind_output(const OutputMetadata& output, ValueBinding& binding, StorageState* storage);
  void end_deferred();

  // Run now: begin_outputs(), one call per flattened tensor return, then end_run(). `abandon`
  // instead when the operation raised.
  void begin_outputs();
  void undefined_output();
  void argument_output(uint32_t source);
  void output(OutputMetadata::Kind kind, uint32_t source, const c10::TensorImpl& impl,
              int64_t storage_bytes, uint8_t flags, ValueBinding& binding, StorageState& storage);
  void end_run();
  void abandon() noexcept;

  // --- Cuts

  // Runs what is pending, starts afresh, raises an error that a deferred operation left.
  void sync(std::string_view cause);
  // Runs what is pending; an error stays for the next sync.
  void cut(std::string_view cause);
  // Where the operation recorded last came from.
  LocationId location() const { return location_; }

  // Runs this window in its owner's stead; an error stays for the owner's next sync.
  void cut_for_another(std::string_view cause);

  // The storage dies: it is no longer an output of its window.
  static void forget(StorageState& storage) noexcept;
  // Runs the pending windows of all threads; raises this thread's error.
  static void synchronize_all();
  // The process ends: pending work has no observer left.
  static void discard_all() noexcept;
  static void before_fork();
  static void after_fork(bool child);

 private:
  enum class Mode : uint8_t { kIdle, kEager, kDeferring };
  using Lock = std::unique_lock<RecordingLock>;

  // A storage of the open window, by slot.
  struct BoundStorage {
    StorageState* owner;  // null once it died, or when another recorder had bound it already
    int64_t bytes;
    bool made;          // made by an operation of this window, not an input
    uint32_t root = 0;  // of one that was made: the value slot that came with it
  };
  // What holds where a window begins, and chooses among the known traces.
  struct TraceKey {
    GlobalState state;
    bool backward = false;
    bool operator<(const TraceKey& other) const {
      // GlobalState is plain data without padding.
      const int order = std::memcmp(&state, &other.state, sizeof state);
      return order != 0 ? order < 0 : backward < other.backward;
    }
  };
  // A compiled trace to be made matchable once it is ready.
  struct Awaited {
    TraceKey key;
    std::shared_ptr<CompiledTrace> trace;
    bool automatic_end;
  };

  static Recorder& lease_for_thread();
  void settle_unusual(const ValueBinding& binding, StorageState& storage);
  bool input(ValueBinding& binding, StorageState& storage, const c10::TensorImpl& impl,
             int64_t storage_bytes, uint8_t flags);
  void start_window(bool backward);
  void close(Lock& lock, std::string_view cause, bool automatic);
  void run_window(Lock& lock, const CompiledTrace::Version& version);
  void run_by_operation(Lock& lock, size_t operations);
  void diverge(Lock& lock);
  void finish_run(RunResult& result, c10::ArrayRef<uint32_t> output_storages, size_t operations);
  void poison(const RunFailure& failure, size_t operations);
  // Whether the trace had been seen before.
  bool learn(bool automatic);
  void admit_ready_traces();
  // Finds where the open operation came from, unless begin() has.
  void locate();
  // The limit that the window has reached; null for none.
  const char* limit_reached() const;
  std::vector<bool> live() const;
  void release_bindings();
  [[noreturn]] void raise_error(Lock& lock);
  void bind_storage(StorageState& storage, int64_t bytes, bool made, uint32_t root);
  static void wait_until_idle(Lock& lock, Recorder& recorder);

  // The calling thread's, once it has one. See GlobalState for the model.
#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local Recorder* of_thread_ = nullptr;

  Lock lock_;  // held between begin() and match() or end_deferred()
  std::atomic<Mode> mode_{Mode::kIdle};
  bool running_ = false;  // some thread runs this window; guarded by the lock
  uint64_t serial_;
  bool backward_ = false;  // at the last operation
  LocationId location_ = kNoLocation;
  Familiarity familiarity_;
  std::chrono::steady_clock::time_point started_;  // when the window was opened
  bool diverged_ = false;                          // began deferring, then left the known traces
  TraceKey key_;                                   // of the window
  uint32_t state_version_ = 0;                     // of its state, see GlobalState::current_version
  Tape tape_;
  Cursor cursor_;
  std::vector<BoundStorage> storages_;
  std::vector<at::Tensor> inputs_;  // of a deferring window, in the order they appear on the tape
  int64_t held_bytes_ = 0;          // see Config::window_bytes
  size_t inputs_before_ = 0;        // inputs when the open operation began
  bool trusted_ = true;             // the tape's slots are right, see output()
  uint64_t generation_ = 0;         // of the traces in `known_`, see trace_generation()
  std::exception_ptr error_;        // left by a deferred operation, raised at the next sync

  std::map<TraceKey, KnownTraces> known_;
  std::vector<Awaited> awaited_;
  std::unordered_set<const CompiledTrace*> awaited_traces_;  // of `awaited_`
  uint64_t finished_seen_ = 0;  // finished_compiles() when `awaited_` was last looked through
  TraceProfile profile_;        // by hash of the tape without the numbers that may be dynamic
  PeriodDetector period_;

  static RecordingLock& mutex();
  static std::condition_variable_any& idle_condition();
  static uint64_t next_serial();
  Metrics::OfThread& counters_ = metrics().of_new_thread();
  RecentCounters windows_{metrics().windows}, cuts_{metrics().cuts}, syncs_{metrics().syncs};
  Recorder() : serial_(next_serial()) {}
  friend struct RecorderPool;
};

}  // namespace torch_lazy
