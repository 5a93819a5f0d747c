// Streams of backward. PyTorch's engine runs each node on the stream of its forward operation and
// lets streams wait for each other, where the node's tensors are on an accelerator. Those of lazy
// tensors run on the stream that is current where backward was called, so that it has to wait for
// what forward did on another, and that one for backward before it is given memory that was freed
// meanwhile.
//
// Used by one thread, the one that records; no lock is held.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace torch_lazy {

class BackwardStreams {
 public:
  // Before an operation of backward: its stream waits, once, for that of the forward operation.
  // May run windows.
  void begin_operation();
  // Before an operation behind backward.
  void begin_operation_behind() {
    if (!waited_.empty()) [[unlikely]]
      end();
  }

 private:
  void end();

  int graph_task_ = -1;
  std::vector<std::pair<c10::Stream, c10::Stream>> waited_;  // backward's for forward's
};

}  // namespace torch_lazy
