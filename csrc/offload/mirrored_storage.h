// The storage of a device without kernels of PyTorch's: the same bytes on the device and on the
// host, of which each may be out of date. They move when somebody needs them where they are not.
//
// The storage's data pointer is the device's address. The host's bytes are a CPU storage, made when
// it is first needed and dropped once the device has newer ones: while an operator runs on the CPU,
// every tensor over this storage has its counterpart over that one, so aliases stay aliases.
//
// Threads: a mutex in each storage guards what is where. Two threads that write one storage are as
// wrong as in eager.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>

#include <mutex>
#include <string_view>

#include "backend/device_runtime.h"
#include "base/api.h"

namespace torch_lazy {

// What is done to the bytes of a storage.
enum class Access : uint8_t {
  kNone,  // nothing: an operator that makes views
  kRead,
  kWrite,      // some, or all, after reading
  kOverwrite,  // all, without reading
};

class MirroredStorage final : public c10::StorageImpl {
 public:
  // `memory` is the device's. As c10::StorageImplCreateHelper calls it.
  MirroredStorage(use_byte_size_t, c10::SymInt bytes, c10::DataPtr memory,
                  c10::Allocator* allocator, bool resizable)
      : StorageImpl(use_byte_size_t{}, std::move(bytes), std::move(memory), allocator, resizable) {}

  // The CPU's storage, with the bytes where they are read; `cause` is counted where they move for
  // it. What is written is the host's once wrote_on_host() was called.
  c10::Storage on_host(Access access, std::string_view cause);
  // The newest bytes are those of the CPU's storage, which may have been resized.
  void wrote_on_host();
  // Makes the device's bytes valid for the access.
  void use_on_device(Access access, std::string_view cause);
  // As torch.UntypedStorage.resize_: keeps the bytes that fit.
  void resize(size_t bytes);
  // The bytes are those of a storage that the CPU has made.
  void adopt(c10::Storage host);
  bool is_on_host() const;
  bool is_on_device() const;

  void release_resources() override;

 private:
  // Neither: nobody has written the bytes yet.
  enum class Valid : uint8_t { kNowhere, kHost, kDevice, kBoth };

  mutable std::mutex mutex_;  // guards what is below, the data pointer and the size
  c10::Storage host_;         // none, or without memory, only where the host is not valid
  Valid valid_ = Valid::kNowhere;
};

// A new one on the current device.
c10::Storage make_mirrored_storage(size_t bytes);

// The storage of a tensor on a device that `offload/` made; null for any other.
MirroredStorage* mirrored(const c10::Storage& storage);

// Whether every byte of the tensor's storage belongs to one of its elements.
bool covers_its_storage(const at::Tensor& tensor);

// Where commands of the device find the first element of a tensor, which they access so: what a
// window of a backend with a DeviceRuntime needs before it uses an address. That of a tensor on any
// other device is its data pointer.
TORCH_LAZY_API void* device_address(const at::Tensor& tensor, Access access);

}  // namespace torch_lazy
