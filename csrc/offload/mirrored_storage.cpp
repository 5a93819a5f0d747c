#include "offload/mirrored_storage.h"

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <typeinfo>
#include <utility>

#include "base/metrics.h"
#include "offload/runtime_device.h"

namespace torch_lazy {
namespace {

void count_moved(const char* direction, std::string_view cause, size_t bytes) {
  increment(metrics().bytes_moved[fmt::format("{}: {}", direction, cause)], int64_t(bytes));
}

bool writes(Access access) {
  return access == Access::kWrite || access == Access::kOverwrite;
}

bool reads(Access access) {
  return access == Access::kRead || access == Access::kWrite;
}

}  // namespace

c10::Storage MirroredStorage::on_host(Access access, std::string_view cause) {
  const std::lock_guard lock(mutex_);
  if (!host_)
    host_ = c10::Storage(c10::Storage::use_byte_size_t(), nbytes(),
                         c10::DataPtr(nullptr, c10::kCPU), c10::GetCPUAllocator(), resizable());
  if (access == Access::kNone) return host_;
  if (host_.data() == nullptr && nbytes() > 0)
    host_.set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(nbytes()));
  if (valid_ == Valid::kDevice && reads(access)) {
    offload_runtime().copy_to_host(device().index(), host_.mutable_data(), data(), nbytes());
    count_moved("to host", cause, nbytes());
    valid_ = Valid::kBoth;
  }
  return host_;
}

void MirroredStorage::wrote_on_host() {
  const std::lock_guard lock(mutex_);
  valid_ = Valid::kHost;
  if (host_.nbytes() == nbytes()) return;
  set_data_ptr_noswap(allocator()->allocate(host_.nbytes()));
  set_nbytes(host_.nbytes());
}

void MirroredStorage::use_on_device(Access access, std::string_view cause) {
  const std::lock_guard lock(mutex_);
  if (valid_ == Valid::kHost && reads(access)) {
    offload_runtime().copy_to_device(device().index(), mutable_data(), host_.data(), nbytes());
    count_moved("to device", cause, nbytes());
    valid_ = Valid::kBoth;
  }
  if (!writes(access) || valid_ == Valid::kDevice) return;
  valid_ = Valid::kDevice;
  host_ = {};
}

void MirroredStorage::resize(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const size_t kept = std::min(bytes, nbytes());
  c10::DataPtr memory = allocator()->allocate(bytes);
  if (valid_ == Valid::kHost) {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    if (kept > 0) std::memcpy(host.get(), host_.data(), kept);
    host_.set_data_ptr_noswap(std::move(host));
  } else {
    if (valid_ != Valid::kNowhere && kept > 0)
      offload_runtime().copy_on_device(device().index(), memory.get(), data(), kept);
    if (valid_ == Valid::kBoth) valid_ = Valid::kDevice;
    host_ = {};
  }
  set_data_ptr_noswap(std::move(memory));
  set_nbytes(bytes);
  if (host_) host_.unsafeGetStorageImpl()->set_nbytes(bytes);
}

void MirroredStorage::adopt(c10::Storage host) {
  const std::lock_guard lock(mutex_);
  host_ = std::move(host);
  valid_ = Valid::kHost;
}

bool MirroredStorage::is_on_host() const {
  const std::lock_guard lock(mutex_);
  return valid_ == Valid::kHost || valid_ == Valid::kBoth;
}

bool MirroredStorage::is_on_device() const {
  const std::lock_guard lock(mutex_);
  return valid_ == Valid::kDevice || valid_ == Valid::kBoth;
}

void MirroredStorage::release_resources() {
  host_ = {};
  StorageImpl::release_resources();
}

c10::Storage make_mirrored_storage(size_t bytes) {
  c10::Allocator* const allocator = c10::GetAllocator(c10::kPrivateUse1);
  return c10::Storage(c10::make_intrusive<MirroredStorage>(c10::StorageImpl::use_byte_size_t(),
                                                           bytes, allocator->allocate(bytes),
                                                           allocator, /*resizable=*/true));
}

MirroredStorage* mirrored(const c10::Storage& storage) {
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  if (impl->device_type() != c10::DeviceType::PrivateUse1) [[likely]]
    return nullptr;
  return typeid(*impl) == typeid(MirroredStorage) ? static_cast<MirroredStorage*>(impl) : nullptr;
}

bool covers_its_storage(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && tensor.nbytes() == tensor.storage().nbytes();
}

void* device_address(const at::Tensor& tensor, Access access) {
  if (MirroredStorage* const storage = mirrored(tensor.storage()))
    storage->use_on_device(access, "a window");
  return tensor.unsafeGetTensorImpl()->mutable_data();
}

}  // namespace torch_lazy
