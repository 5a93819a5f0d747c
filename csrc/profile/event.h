// One thing that a profile shows: what it was, when, on which thread, and the lines it comes from.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/api.h"
#include "tape/source_location.h"

namespace torch_lazy {

enum class EventKind : uint8_t {
  kSync,          // the program waits for a value or for memory; named by the reason
  kFlush,         // a window ends without one; named by the reason
  kRun,           // deferred operations run; named by how
  kKernel,        // a step of a run, as the next four are: a fused kernel
  kLibraryCall,   // an operator that stays PyTorch's own
  kCommand,       // of a vendor's device
  kCopy,          // of a value into memory that has to hold it
  kCheck,         // of indices, before a kernel uses them
  kCompile,       // in the background
  kGuardFailure,  // an operation left the known traces; named by what was expected
  kWindow,        // from the first operation to the flush; named by its state
};

struct ProfileEvent {
  using Clock = std::chrono::steady_clock;

  EventKind kind;
  std::string name = {};
  // Of the operations that it stands for, without repetitions, in their order; the line of the
  // program that waited, for a sync.
  std::vector<LocationId> lines = {};
  int64_t operations = 0;   // recorded ones, of a run, a window or a compile
  int64_t bytes = 0;        // that a step moves, as far as it is known; in use after a window
  std::string reason = {};  // why a window was flushed
  std::string graph = {};   // hash of the graph that a window or a run followed, as graphs() has it
  Clock::time_point begin = {}, end = {};
  int64_t thread = 0;  // as the system numbers it
};

// As torch.lazy.profile() calls it: "library call".
TORCH_LAZY_MODULE_API const char* name(EventKind kind);

// "torch_lazy::window (train.py:41)", "torch_lazy::kernel_mul_add": for PyTorch's profiler, which
// adds up what has equal names.
std::string range_name(const ProfileEvent& event);

}  // namespace torch_lazy
