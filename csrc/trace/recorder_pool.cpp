// Which recorder a thread has, and what becomes of recorders and storages at the end of a thread,
// at a fork, and at the end of the process.
#include "base/fork.h"
#include "runtime/compile_queue.h"
#include "runtime/remembered_traces.h"
#include "runtime/select_backend.h"
#include "trace/recorder.h"

namespace torch_lazy {

void Recorder::begin_thread() {
  deferring_ = true;
  bypass_.reset();
  capturing_ = false;
  learner_.begin_thread();
  deterministic_learner_.begin_thread();
}

// Recorders outlive their threads: a thread that ends hands its recorder, with all it knows, to the
// next.
struct RecorderPool {
  std::vector<Recorder*> all, unused;  // guarded by the recording lock
  bool discarded = false;

  static RecorderPool& instance() {
    static auto* const pool = new RecorderPool;
    return *pool;
  }

  // Those of other threads that have a window, which may be running.
  Recorder::Others open_besides(const Recorder& own) const {
    Recorder::Others open;
    const RecordingGuard lock(recording_lock());
    for (Recorder* const other : all)
      if (other != &own && other->window_.mode() != Window::Mode::kClosed) open.push_back(other);
    return open;
  }

  struct Lease {
    Recorder* recorder;
    Lease() {
      RecorderPool& pool = instance();
      const RecordingGuard lock(recording_lock());
      if (pool.unused.empty()) {
        pool.all.push_back(new Recorder);
        recorder = pool.all.back();
      } else {
        recorder = pool.unused.back();
        pool.unused.pop_back();
        recorder->begin_thread();
      }
    }
    ~Lease() {
      RecorderPool& pool = instance();
      if (pool.discarded) return;
      recorder->flush({FlushReason::kThreadEnds});
      const RecordingGuard lock(recording_lock());
      recorder->error_ = nullptr;
      pool.unused.push_back(recorder);
    }
  };
};

void Recorder::forget(StorageState& storage) noexcept {
  if (!storage.recorder.load(std::memory_order_acquire) &&
      storage.readers.load(std::memory_order_acquire) == 0)
    return;
  const RecordingGuard lock(recording_lock());
  if (Recorder* recorder = storage.recorder.load(std::memory_order_relaxed))
    recorder->window_.unbind(storage);
  if (storage.readers.load(std::memory_order_relaxed) == 0) return;
  for (Recorder* const reader : RecorderPool::instance().all)
    if (reader->window_.mode() == Window::Mode::kDeferring) reader->window_.keep_shared(storage);
}

void Recorder::add_conflicting(StorageState& storage, bool writes, Others& others) const {
  Recorder* const owner = storage.recorder.load(std::memory_order_relaxed);
  if (owner && owner != this) {
    const bool deferring = owner->window_.mode() == Window::Mode::kDeferring;
    if (!storage.resident() || (deferring && writes) || owner->window_.defers_write(storage))
      others.push_back(owner);
  }
  if (!writes || storage.readers.load(std::memory_order_relaxed) == 0) return;
  for (Recorder* const other : RecorderPool::instance().all)
    if (other != this && other != owner && other->window_.mode() == Window::Mode::kDeferring &&
        other->window_.shares(storage))
      others.push_back(other);
}

Recorder& Recorder::lease_for_thread() {
  static const bool registered =
      (register_at_fork(LockOrder::kRecording, before_fork, after_fork), true);
  static_cast<void>(registered);
  select_backend_of_environment();
  recall_traces();
  static thread_local RecorderPool::Lease lease;
  of_thread_ = lease.recorder;
  return *lease.recorder;
}

void Recorder::synchronize_all() {
  Recorder& own = current();
  for (Recorder* const other : RecorderPool::instance().open_besides(own))
    other->flush_for_another({FlushReason::kSynchronize});
  own.sync({FlushReason::kSynchronize});
}

void Recorder::synchronize_streams(c10::ArrayRef<c10::Stream> streams) {
  Recorder& own = current();
  for (Recorder* const other : RecorderPool::instance().open_besides(own))
    other->flush_for_another({FlushReason::kSynchronize}, streams);
  {
    const RecordingGuard lock(recording_lock());
    if (!own.window_.runs_on(streams)) return;
  }
  own.sync({FlushReason::kSynchronize});
}

void Recorder::before_fork() {
  recording_lock().lock();
}

void Recorder::after_fork(bool child) {
  if (child) {
    Window::forget_waiters();
    for (Recorder* recorder : RecorderPool::instance().all)
      recorder->keep_error(recorder->window_.lose_run());
  }
  recording_lock().unlock();
}

void Recorder::discard_all() noexcept {
  stop_compiles();
  remember_traces(Until::kTheEnd);
  EarlyThread::stop_all();
  const RecordingGuard lock(recording_lock());
  RecorderPool::instance().discarded = true;
}

}  // namespace torch_lazy
