// Which recorder a thread has, and what becomes of recorders and storages at the end of a thread,
// at a fork, and at the end of the process.
#include <pthread.h>

#include "runtime/compile_queue.h"
#include "trace/recorder.h"

namespace torch_lazy {

void Recorder::forget(StorageState& storage) noexcept {
  if (!storage.recorder.load(std::memory_order_acquire)) return;
  const Lock lock(mutex());
  Recorder* recorder = storage.recorder.load(std::memory_order_relaxed);
  if (!recorder) return;
  auto& bound = recorder->storages_;
  size_t slot = storage.slot;
  // Another thread may have bound the storage since, and overwritten the slot.
  if (slot >= bound.size() || bound[slot].owner != &storage)
    for (slot = 0; slot < bound.size() && bound[slot].owner != &storage;) ++slot;
  if (slot == bound.size()) return;
  bound[slot].owner = nullptr;
  storage.recorder.store(nullptr, std::memory_order_relaxed);
  // A pending storage that dies needs no memory; an input that dies is kept by the window.
  recorder->held_bytes_ += bound[slot].made ? -bound[slot].bytes : bound[slot].bytes;
}

// Recorders outlive their threads: a thread that ends hands its recorder, with all it knows, to the
// next.
struct RecorderPool {
  std::vector<Recorder*> all, unused;  // guarded by Recorder::mutex()
  bool discarded = false;

  static RecorderPool& instance() {
    static auto* const pool = new RecorderPool;
    return *pool;
  }

  struct Lease {
    Recorder* recorder;
    Lease() {
      RecorderPool& pool = instance();
      const std::lock_guard<RecordingLock> lock(Recorder::mutex());
      if (pool.unused.empty()) {
        pool.all.push_back(new Recorder);
        recorder = pool.all.back();
      } else {
        recorder = pool.unused.back();
        pool.unused.pop_back();
      }
    }
    ~Lease() {
      RecorderPool& pool = instance();
      if (pool.discarded) return;
      recorder->cut("thread ends");
      const std::lock_guard<RecordingLock> lock(Recorder::mutex());
      recorder->error_ = nullptr;
      pool.unused.push_back(recorder);
    }
  };
};

Recorder& Recorder::lease_for_thread() {
  // A child must not inherit the lock from a thread it does not have.
  static const int registered =
      pthread_atfork([] { before_fork(); }, [] { after_fork(false); }, [] { after_fork(true); });
  static_cast<void>(registered);
  static thread_local RecorderPool::Lease lease;
  of_thread_ = lease.recorder;
  return *lease.recorder;
}

void Recorder::synchronize_all() {
  std::vector<Recorder*> all;
  {
    const std::lock_guard<RecordingLock> lock(mutex());
    all = RecorderPool::instance().all;
  }
  Recorder& own = current();
  for (Recorder* recorder : all)
    if (recorder != &own) recorder->cut_for_another("synchronize");
  own.sync("synchronize");
}

void Recorder::before_fork() {
  mutex().lock();
}

void Recorder::after_fork(bool child) {
  if (child)
    for (Recorder* recorder : RecorderPool::instance().all) recorder->running_ = false;
  mutex().unlock();
}

void Recorder::discard_all() noexcept {
  stop_compiles();
  const std::lock_guard<RecordingLock> lock(mutex());
  RecorderPool::instance().discarded = true;
}

}  // namespace torch_lazy
