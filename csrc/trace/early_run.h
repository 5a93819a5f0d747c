// The part of a deferring window that its device does while the program still records it.
//
// A device that runs behind the host would be idle from a sync point until the next window is
// complete. So where windows that begin as this one does have ended alike the last times, what
// the executable of that trace can do with the operations so far is given to the device, by a
// thread beside the one that records: to call operators and to launch kernels takes the host as
// long as to record them. Nothing of it writes what the program can see: where the window then is
// another one, its results are dropped, and the window runs as if nothing had been done.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/compiled_trace.h"
#include "tape/tape.h"
#include "trace/early_thread.h"
#include "trace/global_state.h"

namespace torch_lazy {

// Belongs to a window and is used as that is. Destroyed without the lock, since it has tensors, and
// after wait() or cancel().
class EarlyRun {
 public:
  using Version = CompiledTrace::Version;

  // Null where the executable does not run early. `state` and `stream`: the window's. The thread
  // works for no other run meanwhile.
  static std::unique_ptr<EarlyRun> begin(const std::shared_ptr<const Version>& version,
                                         EarlyThread& thread, const GlobalState& state,
                                         std::optional<c10::Stream> stream);

  bool is_of(const Version& version) const { return version_.get() == &version; }
  bool was_told() const { return told_operations_ > 0; }
  // Tells what is on the tape by now, of which no operation is open. `inputs` are the window's so
  // far. What follows from it is submitted meanwhile. A step that fails is told by finish().
  void tell(const Tape& tape, c10::ArrayRef<at::Tensor> inputs);
  // Waits until all that was told is submitted. False where the run may not be finished. To be
  // called before the thread puts global settings in force, which would hide a change.
  bool wait();
  // Drops what was told and is not submitted. False where nothing is known of what was submitted,
  // so that the run may not even be destroyed.
  [[nodiscard]] bool cancel();
  // After wait() or cancel(): whether the device was given something, and whether that may not be
  // what the window does: the program changed a global setting meanwhile, or a stage raised.
  bool has_begun() const { return begun_; }
  bool is_spoiled() const { return spoiled_; }
  // Submits the rest: as Version::run(), with all inputs, numbers included. After wait().
  RunResult finish(c10::ArrayRef<at::Tensor> inputs);

 private:
  // What was recorded since the thread was told last.
  struct Recorded {
    size_t nodes = 0;  // known by now
    std::vector<std::pair<size_t, at::Tensor>> inputs;
    std::vector<Tape::Entry> entries;
  };

  EarlyRun(const std::shared_ptr<const Version>& version, std::unique_ptr<StagedRun> run,
           EarlyThread& thread, const GlobalState& state, std::optional<c10::Stream> stream);
  void submit(const Recorded& recorded) noexcept;

  const std::shared_ptr<const Version> version_;
  EarlyThread& thread_;
  const GlobalState state_;
  const std::optional<c10::Stream> stream_;

  // The recording thread's.
  size_t told_operations_ = 0, told_inputs_ = 0, told_numbers_ = 0;
  std::vector<double> numbers_;  // which inputs lie on: each written before that input is told

  // The other thread's, and after a wait the recording thread's.
  std::unique_ptr<StagedRun> run_;
  std::vector<at::Tensor> inputs_;    // of the graph; undefined as long as they are not known
  std::vector<Tape::Entry> entries_;  // of the tape
  std::vector<c10::Warning> said_;    // by operators, to be said again by the program's thread
  bool begun_ = false, spoiled_ = false;
};

}  // namespace torch_lazy
