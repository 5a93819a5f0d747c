// The storage of a family of views on device `lazy`.
//
// Its own data pointer is always null: the bytes are in the backend's buffer, once there is one.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include "backend/execution_device.h"
#include "device/object_pool.h"
#include "trace/recorder.h"
#include "trace/storage_state.h"

namespace torch_lazy {

class LazyStorage final : public c10::StorageImpl {
 public:
  LazyStorage(int64_t bytes, c10::DeviceIndex index)
      : StorageImpl(use_byte_size_t{}, bytes, c10::DataPtr(nullptr, lazy_device(index)), nullptr,
                    /*resizable=*/false) {}
  ~LazyStorage() override { Recorder::forget(state); }

  // The last strong reference is gone; a weak one may keep the object.
  void release_resources() override {
    Recorder::forget(state);
    state.buffer = {};
    StorageImpl::release_resources();
  }

  static void* operator new(size_t) { return ObjectPool<LazyStorage>::allocate(); }
  static void operator delete(void* storage) noexcept { ObjectPool<LazyStorage>::release(storage); }

  StorageState state;
};

inline c10::Storage make_lazy_storage(int64_t bytes, c10::DeviceIndex index) {
  return c10::Storage(c10::make_intrusive<LazyStorage>(bytes, index));
}

// A new storage over memory of the backend.
inline c10::Storage make_lazy_storage(c10::Storage buffer) {
  auto storage =
      c10::make_intrusive<LazyStorage>(int64_t(buffer.nbytes()), lazy_index(buffer.device()));
  storage->state.buffer = std::move(buffer);
  return c10::Storage(std::move(storage));
}

}  // namespace torch_lazy
