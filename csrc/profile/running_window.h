// The run of a window that is profiled: whether its steps are shown, and which lines they come
// from. An executable serves windows from several places of a program, and knows operations only by
// their number.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// The scope of a run that is profiled, on the thread that it is in.
class RunningWindow {
 public:
  // `operations`: of the tape, by node of the graph that runs; none where the tape itself does.
  // Both outlive the scope.
  RunningWindow(const Tape& tape, c10::ArrayRef<uint32_t> operations);
  ~RunningWindow();
  RunningWindow(const RunningWindow&) = delete;
  RunningWindow& operator=(const RunningWindow&) = delete;

 private:
  friend class UnprofiledRun;
  friend bool shows_steps();
  friend std::vector<LocationId> lines_of_nodes(c10::ArrayRef<int64_t> nodes);

#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local RunningWindow* of_thread_ = nullptr;

  const Tape& tape_;
  const c10::ArrayRef<uint32_t> operations_;
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

// Whether the calling thread is in a run whose steps are shown: one load.
inline bool shows_steps() {
  return RunningWindow::of_thread_ != nullptr;
}

// The lines of these nodes without repetitions, in their order; none outside of a run that is
// profiled.
std::vector<LocationId> lines_of_nodes(c10::ArrayRef<int64_t> nodes);

}  // namespace torch_lazy
