// What a family of views knows about its bytes, and which window it is bound in.
//
// Embedded in device/'s storage and tensor objects: trace/ and runtime/ work on these plain structs
// and never own, or even see, a lazy tensor or storage.
#pragma once

#include <c10/core/Storage.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "trace/view_history.h"

namespace torch_lazy {

class Recorder;

// A value's place in the window with that serial number. Serial numbers are unique over all
// recorders.
struct ValueBinding {
  uint64_t window = 0;
  uint32_t slot = 0;
};

// The storage is
//   resident  `buffer` is set: the backend's memory. Its identity never changes from then on.
//   pending   `buffer` is empty and `recorder` is set: an operation of the open window makes it.
//   poisoned  `error` is set: an operation that should have written it failed at a sync point.
struct StorageState {
  c10::Storage buffer;
  // Serial of the window it was last bound in, and its slot there. A deferring window that owns it
  // keeps it: that of another recorder shares it, or describes it without binding it.
  uint64_t window = 0;
  uint32_t slot = 0;
  uint64_t written_in = 0;  // serial of the window that last deferred a write to it
  // Windows that read it besides the one that has bound it, see SharedInputs. Who writes the
  // storage has them run first. Changed under the recording lock, read without it as `recorder` is.
  std::atomic<uint32_t> readers{0};
  // Shared with others (DLPack, other processes): operations on it run at the call. Another thread
  // may say so, that of a queue for instance.
  std::atomic<bool> exported{false};
  // The recorder whose table of owners this storage stands in. A deferring window enters every
  // storage it reads or writes and shares with no other. Where it writes, it must run before
  // another thread touches the storage; where it only reads, before another writes. One that runs
  // at once enters only what it makes, to know what is live when it closes, and hands it over to a
  // deferring one. Written under the recording lock; read without it to see whether another
  // thread's window must run first.
  std::atomic<Recorder*> recorder{nullptr};
  std::shared_ptr<const std::exception_ptr> error;
  ViewHistory views;

  bool resident() const { return static_cast<bool>(buffer); }
};

}  // namespace torch_lazy
