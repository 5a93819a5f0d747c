// The storage of a device without kernels of PyTorch's: the same bytes on the device and on the
// host, of which each may be out of date. They move when somebody needs them where they are not.
//
// The storage's data pointer is the device's address. The host's bytes are a CPU storage, made when
// it is first needed and dropped once the device has newer ones: while an operator runs on the CPU,
// every tensor over this storage has its counterpart over that one, so aliases stay aliases.
//
// Threads: one lock of the process guards what is where, since work on the device is submitted
// under it together with the addresses that it uses. Threads may work on different views of one
// storage: the device does not write one while an operator on the host uses it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>

#include <mutex>
#include <string_view>

#include "backend/device_runtime.h"
#include "offload/device_addresses.h"

namespace torch_lazy {

class MirroredStorage final : public c10::StorageImpl {
 public:
  // `memory` is the device's. As c10::StorageImplCreateHelper calls it.
  MirroredStorage(use_byte_size_t, c10::SymInt bytes, c10::DataPtr memory,
                  c10::Allocator* allocator, bool resizable)
      : StorageImpl(use_byte_size_t{}, std::move(bytes), std::move(memory), allocator, resizable) {}

  // An operator on the host begins: the CPU's storage, with the bytes where they are read. `cause`
  // is counted where they move for it.
  c10::Storage begin_on_host(Access access, std::string_view cause);
  // It has ended. What it wrote is the newest; it may have resized the CPU's storage.
  void end_on_host(bool wrote);
  // Makes the device's bytes valid for the access. The lock is held, and is released while an
  // operator on the host is waited for.
  void use_on_device(std::unique_lock<std::mutex>& lock, Access access, std::string_view cause);
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

  c10::Storage host_;  // none, or without memory, only where the host is not valid
  Valid valid_ = Valid::kNowhere;
  int on_host_ = 0;  // operators on the host that use it now
};

// A new one on that device.
c10::Storage make_mirrored_storage(size_t bytes, c10::Device device);

// The storage of a tensor on a device that `offload/` made; null for any other.
MirroredStorage* mirrored(const c10::Storage& storage);

// Whether every byte of the tensor's storage belongs to one of its elements.
bool covers_its_storage(const at::Tensor& tensor);
// What writing all elements of the tensor is to its storage.
Access overwriting(const at::Tensor& tensor);

}  // namespace torch_lazy
