#include "ir/place_inputs.h"

#include <c10/util/accumulate.h>

#include <algorithm>

namespace torch_lazy {
namespace {

// One past the last byte; the offset where there is none.
int64_t end_of(const InputMetadata& input, int64_t offset) {
  int64_t elements = 1;
  for (size_t i = 0; i < input.sizes.size(); ++i) {
    if (input.sizes[i] == 0) return offset;
    elements += (input.sizes[i] - 1) * input.strides[i];
  }
  return offset + elements * int64_t(c10::elementSize(input.dtype));
}

}  // namespace

void InputPlacer::add(const InputMetadata& input) {
  if (!input.cpu) {
    Storage& storage = storages_[input.storage];
    storage.inputs.push_back(inputs_.size());
    // Where there is one input when the storage is written, the tape has nothing to say of it. An
    // operation that resizes has the offsets made absolute before, so what is said first of the
    // size is how large the storage was when the window began.
    if (input.offset.kind >= OffsetKind::kRelative && storage.kind != OffsetKind::kAbsolute) {
      storage.kind = input.offset.kind;
      storage.bytes = input.storage_bytes;
    }
  }
  inputs_.push_back(input);
}

void InputPlacer::add(const StorageOffsets& known) {
  Storage& storage = storages_[known.storage];
  storage.kind = known.kind;
  storage.bytes = known.storage_bytes;
  auto other = known.others.begin();
  for (const size_t index : storage.inputs) {
    InputOffset& offset = inputs_[index].offset;
    if (offset.kind == OffsetKind::kFirst)
      offset.bytes = known.first;
    else if (offset.kind == OffsetKind::kOther)
      offset.bytes = *other++;
    else if (offset.kind == OffsetKind::kRelative && known.kind == OffsetKind::kAbsolute)
      offset = {OffsetKind::kAbsolute, offset.bytes + known.first};
  }
}

std::vector<WindowInput> InputPlacer::place(uint32_t storages) const {
  std::vector<WindowInput> placed(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    placed[i].cpu = inputs_[i].cpu;
    placed[i].storage_bytes = inputs_[i].cpu ? inputs_[i].storage_bytes : end_of(inputs_[i], 0);
  }
  uint32_t next_storage = storages;
  for (const auto& [slot, storage] : storages_) {
    const bool known = storage.kind != OffsetKind::kFirst;
    std::vector<size_t> together;
    for (const size_t index : storage.inputs) {
      const bool apart = !known && inputs_[index].offset.kind == OffsetKind::kOther;
      placed[index].storage = apart ? next_storage++ : slot;
      if (!apart) together.push_back(index);
    }
    int64_t origin = 0, end = storage.bytes;
    if (storage.kind != OffsetKind::kAbsolute) {
      for (const size_t index : together) origin = std::min(origin, inputs_[index].offset.bytes);
      for (const size_t index : together)
        end = std::max(end, end_of(inputs_[index], inputs_[index].offset.bytes - origin));
    }
    for (const size_t index : together) {
      placed[index].offset =
          (inputs_[index].offset.bytes - origin) / int64_t(c10::elementSize(inputs_[index].dtype));
      placed[index].storage_bytes = end;
    }
  }
  return placed;
}

}  // namespace torch_lazy
