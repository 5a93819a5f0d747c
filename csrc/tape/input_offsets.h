// How a tape describes where inputs lie in their storages, while it is recorded: see OffsetKind.
//
// One window's. Storages are given by slot; offsets are bytes from the start of the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

class InputOffsets {
 public:
  // The next slot. Of a storage that the window makes itself, offsets are known.
  void add_storage(bool made) {
    storages_.push_back({made ? OffsetKind::kAbsolute : OffsetKind::kFirst});
  }
  void clear() {
    storages_.clear();
    others_.clear();
  }

  // Of the next input over the storage.
  InputOffset describe(uint32_t storage, int64_t offset);

  // From now on offsets are of this kind, kRelative or kAbsolute. Returns what the tape has to say
  // of the inputs so far, if anything.
  std::optional<StorageOffsets> fix(uint32_t storage, OffsetKind kind, int64_t storage_bytes) {
    if (storages_[storage].kind >= kind) [[likely]]
      return std::nullopt;
    return fix_unknown(storage, kind, storage_bytes);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Storage {
    OffsetKind kind;              // kFirst: not known
    int64_t first = -1;           // offset of the first input; none yet
    uint32_t last_other = kNone;  // index in others_
  };
  // An input that does not lie where the first over its storage does.
  struct Other {
    int64_t offset;
    uint32_t previous;  // over the same storage, by index
  };

  std::optional<StorageOffsets> fix_unknown(uint32_t storage, OffsetKind kind,
                                            int64_t storage_bytes);

  std::vector<Storage> storages_;  // by slot
  std::vector<Other> others_;      // few windows have any
};

}  // namespace torch_lazy
