// What a window reads that the deferring window of another thread reads too.
//
// A storage and a tensor have room for the names that one window gives them. Where that is the
// window of another thread, which must not lose them, this holds the names. Threads that compute
// with one model so record beside each other. Who writes such a storage has all windows run first
// that read it, see StorageState::readers.
//
// Threads: those of its window. Of a deferring one all is used under the recording lock, of an
// eager one by its owner alone; storages are added and removed under the lock in both.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "trace/storage_state.h"

namespace torch_lazy {

class SharedInputs {
 public:
  SharedInputs() = default;
  ~SharedInputs() { clear(); }
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  bool empty() const { return storages_.empty() && values_.empty(); }

  // The storage's slot; nothing where it is not here.
  std::optional<uint32_t> slot_of(StorageState& storage) const;
  // `object` is what the state belongs to.
  void add(StorageState& storage, c10::StorageImpl& object, uint32_t slot);
  // The storage has the names of this window itself from now on, the tensors that are here do not.
  void remove(StorageState& storage);

  // The value that the tensor is; nothing where it is not here, or is not what it was.
  std::optional<uint32_t> value_of(const c10::TensorImpl& tensor,
                                   const StorageState& storage) const;
  void add_value(const c10::TensorImpl& tensor, const StorageState& storage, uint32_t value);

  void clear();

 private:
  struct Storage {
    // Weak, so that no other storage comes to lie at an address that is a key.
    c10::weak_intrusive_ptr<c10::StorageImpl> object;
    uint32_t slot;
    bool shared;  // not removed
  };
  // A tensor that comes to lie at the address of one that died is the same value where it has the
  // same geometry on the same storage. No reference, not even a weak one: programs may not exchange
  // the contents of a tensor that has such (torch.utils.swap_tensors).
  struct Value {
    const StorageState* storage;
    c10::SmallVector<int64_t, 9> geometry;
    uint32_t value;
  };

  std::unordered_map<StorageState*, Storage> storages_;
  std::unordered_map<const c10::TensorImpl*, Value> values_;
};

}  // namespace torch_lazy
