// Which inputs of a window share storage, and where in it they lie.
//
// Of a storage that the window only reads the tape says little, see OffsetKind: there every input
// that lies elsewhere than the first becomes one with a storage of its own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// What a graph's types do not say of an input; see GraphInput of backend/backend.h.
struct WindowInput {
  uint32_t storage = 0;
  int64_t storage_bytes = 0;
  int64_t offset = 0;  // elements
  bool cpu = false;
};

class InputPlacer {
 public:
  // As they stand on the tape, in order.
  void add(const InputMetadata& input);
  void add(const StorageOffsets& known);

  // One for each added input. `storages`: how many the tape has.
  std::vector<WindowInput> place(uint32_t storages) const;

 private:
  struct Storage {
    OffsetKind kind = OffsetKind::kFirst;  // or kRelative or kAbsolute, of all
    int64_t bytes = 0;                     // of the whole before it is resized, where absolute
    std::vector<size_t> inputs;
  };
  std::vector<InputMetadata> inputs_;
  std::map<uint32_t, Storage> storages_;  // by slot, of inputs that are not the CPU's
};

}  // namespace torch_lazy
