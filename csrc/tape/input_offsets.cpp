#include "tape/input_offsets.h"

#include <algorithm>

namespace torch_lazy {

InputOffset InputOffsets::describe(uint32_t slot, int64_t offset) {
  Storage& storage = storages_[slot];
  if (storage.first < 0) storage.first = offset;
  if (storage.kind == OffsetKind::kAbsolute) return {OffsetKind::kAbsolute, offset};
  if (storage.kind == OffsetKind::kRelative) return {OffsetKind::kRelative, offset - storage.first};
  if (offset == storage.first) return {OffsetKind::kFirst};
  others_.push_back({offset, storage.last_other});
  storage.last_other = uint32_t(others_.size() - 1);
  return {OffsetKind::kOther};
}

std::optional<StorageOffsets> InputOffsets::fix_unknown(uint32_t slot, OffsetKind kind,
                                                        int64_t storage_bytes) {
  Storage& storage = storages_[slot];
  storage.kind = kind;
  const bool absolute = kind == OffsetKind::kAbsolute;
  StorageOffsets known{slot, kind};
  if (absolute) {
    known.first = storage.first;
    known.storage_bytes = storage_bytes;
  }
  for (uint32_t other = storage.last_other; other != kNone; other = others_[other].previous)
    known.others.push_back(others_[other].offset - (absolute ? 0 : storage.first));
  std::reverse(known.others.begin(), known.others.end());
  if (!absolute && known.others.empty()) return std::nullopt;
  return known;
}

}  // namespace torch_lazy
