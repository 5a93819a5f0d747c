// The part of a deferring window that its device does while the program still records it.
//
// A device that runs behind the host would be idle from a sync point until the next window is
// complete. So where windows that begin as this one does have ended alike the last times, what
// the executable of that trace can do with the operations so far is given to the device as soon as
// it is idle. Nothing of it writes what the program can see: where the window then is another one,
// its results are dropped, and the window runs as if nothing had been done.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/compiled_trace.h"
#include "tape/tape.h"

namespace torch_lazy {

// Guarded as the window that it belongs to. Destroyed without the lock: it has tensors.
class EarlyRun {
 public:
  using Version = CompiledTrace::Version;

  // Null where the executable does not run early.
  static std::unique_ptr<EarlyRun> begin(const std::shared_ptr<const Version>& version);

  bool is_of(const Version& version) const { return version_.get() == &version; }
  // The device was given something.
  bool has_begun() const { return begun_; }
  // Submits what can be done with the operations on the tape, of which none is open. `inputs` are
  // the window's so far. What fails is told by finish().
  void advance(const Tape& tape, c10::ArrayRef<at::Tensor> inputs);
  // Submits the rest: as Version::run(), with all inputs, numbers included.
  RunResult finish(c10::ArrayRef<at::Tensor> inputs);

 private:
  EarlyRun(const std::shared_ptr<const Version>& version, std::unique_ptr<StagedRun> run);

  std::shared_ptr<const Version> version_;
  std::unique_ptr<StagedRun> run_;
  bool begun_ = false;
  std::vector<double> numbers_;
  std::vector<at::Tensor> inputs_;  // of the graph; undefined as long as they are not known
};

}  // namespace torch_lazy
