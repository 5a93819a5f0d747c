#include "trace/shared_inputs.h"

#include <utility>

namespace torch_lazy {
namespace {

// By a weak count alone: a second strong reference to what Python holds takes the GIL.
c10::weak_intrusive_ptr<c10::StorageImpl> weak(c10::StorageImpl& object) {
  c10::raw::weak_intrusive_ptr::incref(&object);
  return c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(&object);
}

// Sizes, strides, offset and dtype.
c10::SmallVector<int64_t, 9> geometry_of(const c10::TensorImpl& tensor) {
  c10::SmallVector<int64_t, 9> geometry(tensor.sizes().begin(), tensor.sizes().end());
  geometry.append(tensor.strides().begin(), tensor.strides().end());
  geometry.push_back(tensor.storage_offset());
  geometry.push_back(int64_t(tensor.dtype().toScalarType()));
  return geometry;
}

}  // namespace

std::optional<uint32_t> SharedInputs::slot_of(StorageState& storage) const {
  const auto found = storages_.find(&storage);
  if (found == storages_.end() || !found->second.shared) return std::nullopt;
  return found->second.slot;
}

void SharedInputs::add(StorageState& storage, c10::StorageImpl& object, uint32_t slot) {
  storages_.insert_or_assign(&storage, Storage{weak(object), slot, true});
  storage.readers.fetch_add(1, std::memory_order_release);
}

void SharedInputs::remove(StorageState& storage) {
  const auto found = storages_.find(&storage);
  if (found == storages_.end() || !std::exchange(found->second.shared, false)) return;
  storage.readers.fetch_sub(1, std::memory_order_release);
}

std::optional<uint32_t> SharedInputs::value_of(const c10::TensorImpl& tensor,
                                               const StorageState& storage) const {
  const auto found = values_.find(&tensor);
  if (found == values_.end() || found->second.storage != &storage ||
      found->second.geometry != geometry_of(tensor))
    return std::nullopt;
  return found->second.value;
}

void SharedInputs::add_value(const c10::TensorImpl& tensor, const StorageState& storage,
                             uint32_t value) {
  values_.insert_or_assign(&tensor, Value{&storage, geometry_of(tensor), value});
}

void SharedInputs::clear() {
  for (const auto& [state, storage] : storages_)
    if (storage.shared) state->readers.fetch_sub(1, std::memory_order_release);
  storages_.clear();
  values_.clear();
}

}  // namespace torch_lazy
