// The run of a window whose steps have to be told apart, since they are shown to profiles or since
// a device may fail at them later: which operations and lines they come from. An executable serves
// windows from several places of a program, and knows operations only by their number.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// The scope of such a run, on the thread that it is in.
class RunningWindow {
 public:
  // `entries`: of the tape, as far as it is known. `operations`: of them, by node of the graph that
  // runs; none where the tape itself does. Both outlive the scope. `shown`: the steps are shown to
  // profiles.
  RunningWindow(c10::ArrayRef<Tape::Entry> entries, c10::ArrayRef<uint32_t> operations, bool shown);
  ~RunningWindow();
  RunningWindow(const RunningWindow&) = delete;
  RunningWindow& operator=(const RunningWindow&) = delete;

  // That of the calling thread; null where it is in none.
  static RunningWindow* of_thread() { return of_thread_; }

  // From now on the thread works for this node of the graph.
  void enter(int64_t node) { node_ = node; }
  // The operation that it works for; null where the node is none of the graph's.
  const Tape::Entry* entered() const { return entry(node_); }

 private:
  friend class UnprofiledRun;
  friend bool shows_steps();
  friend std::vector<LocationId> lines_of_nodes(c10::ArrayRef<int64_t> nodes);

#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local RunningWindow* of_thread_ = nullptr;

  const Tape::Entry* entry(int64_t node) const;

  const c10::ArrayRef<Tape::Entry> entries_;
  const c10::ArrayRef<uint32_t> operations_;
  const bool shown_;
  int64_t node_ = -1;  // none yet
  RunningWindow* const outer_;
};

// The scope of a run, or of a part of it, whose steps are not shown: a comparison, of its time or
// of its results.
class UnprofiledRun {
 public:
  UnprofiledRun() { RunningWindow::of_thread_ = nullptr; }
  ~UnprofiledRun() { RunningWindow::of_thread_ = outer_; }
  UnprofiledRun(const UnprofiledRun&) = delete;
  UnprofiledRun& operator=(const UnprofiledRun&) = delete;

 private:
  RunningWindow* const outer_ = RunningWindow::of_thread_;
};

// Whether the calling thread is in a run whose steps are shown.
inline bool shows_steps() {
  const RunningWindow* const running = RunningWindow::of_thread_;
  return running && running->shown_;
}

// The lines of these nodes without repetitions, in their order; none outside of such a run.
std::vector<LocationId> lines_of_nodes(c10::ArrayRef<int64_t> nodes);

}  // namespace torch_lazy
