#include "offload/mirrored_storage.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <typeinfo>
#include <utility>

#include "base/fork.h"
#include "base/metrics.h"
#include "offload/runtime_device.h"

namespace torch_lazy {
namespace {

void count_moved(const char* direction, std::string_view cause, size_t bytes) {
  increment(metrics().bytes_moved[fmt::format("{}: {}", direction, cause)], int64_t(bytes));
}

// Of all storages; see the header.
ForkSafeMutex& offload_mutex() {
  static ForkSafeMutex& instance = *new ForkSafeMutex(LockOrder::kOffload);
  return instance;
}
[[maybe_unused]] ForkSafeMutex& offload_mutex_made_at_load = offload_mutex();

std::condition_variable& host_is_done() {
  static auto& instance = *new std::condition_variable;
  return instance;
}

}  // namespace

c10::Storage MirroredStorage::begin_on_host(Access access, std::string_view cause) {
  const std::lock_guard<std::mutex> lock(offload_mutex());
  if (!host_)
    host_ = c10::Storage(c10::Storage::use_byte_size_t(), nbytes(),
                         c10::DataPtr(nullptr, c10::kCPU), c10::GetCPUAllocator(), resizable());
  if (access != Access::kNone && nbytes() > 0) {
    if (host_.data() == nullptr)
      host_.set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(nbytes()));
    if (valid_ == Valid::kDevice && reads(access)) {
      offload_runtime().copy_to_host(device().index(), host_.mutable_data(), data(), nbytes());
      count_moved("to host", cause, nbytes());
      valid_ = Valid::kBoth;
    }
    // What raises halfway leaves the device's.
    if (valid_ == Valid::kBoth && access == Access::kOverwrite) valid_ = Valid::kDevice;
  }
  ++on_host_;
  return host_;
}

void MirroredStorage::end_on_host(bool wrote) {
  const std::lock_guard<std::mutex> lock(offload_mutex());
  if (--on_host_ == 0) host_is_done().notify_all();
  if (!wrote) return;
  valid_ = Valid::kHost;
  if (host_.nbytes() == nbytes()) return;
  const c10::DeviceGuard guard(device());
  set_data_ptr_noswap(allocator()->allocate(host_.nbytes()));
  set_nbytes(host_.nbytes());
}

void MirroredStorage::use_on_device(std::unique_lock<std::mutex>& lock, Access access,
                                    std::string_view cause) {
  if (writes(access)) host_is_done().wait(lock, [this] { return on_host_ == 0; });
  if (valid_ == Valid::kHost && reads(access) && nbytes() > 0) {
    offload_runtime().copy_to_device(device().index(), mutable_data(), host_.data(), nbytes());
    count_moved("to device", cause, nbytes());
    valid_ = Valid::kBoth;
  }
  if (!writes(access) || valid_ == Valid::kDevice) return;
  valid_ = Valid::kDevice;
  host_ = {};
}

void MirroredStorage::resize(size_t bytes) {
  const std::lock_guard<std::mutex> lock(offload_mutex());
  const c10::DeviceGuard guard(device());
  const size_t kept = std::min(bytes, nbytes());
  c10::DataPtr memory = allocator()->allocate(bytes);
  if (valid_ == Valid::kHost) {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    if (kept > 0) std::memcpy(host.get(), host_.data(), kept);
    host_.set_data_ptr_noswap(std::move(host));
  } else {
    if (valid_ != Valid::kNowhere && kept > 0)
      offload_runtime().copy(device().index(), memory.get(), data(), kept);
    if (valid_ == Valid::kBoth) valid_ = Valid::kDevice;
    host_ = {};
  }
  set_data_ptr_noswap(std::move(memory));
  set_nbytes(bytes);
  if (host_) host_.unsafeGetStorageImpl()->set_nbytes(bytes);
}

void MirroredStorage::adopt(c10::Storage host) {
  const std::lock_guard<std::mutex> lock(offload_mutex());
  host_ = std::move(host);
  valid_ = Valid::kHost;
}

bool MirroredStorage::is_on_host() const {
  const std::lock_guard<std::mutex> lock(offload_mutex());
  return valid_ == Valid::kHost || valid_ == Valid::kBoth;
}

bool MirroredStorage::is_on_device() const {
  const std::lock_guard<std::mutex> lock(offload_mutex());
  return valid_ == Valid::kDevice || valid_ == Valid::kBoth;
}

void MirroredStorage::release_resources() {
  host_ = {};
  StorageImpl::release_resources();
}

c10::Storage make_mirrored_storage(size_t bytes, c10::Device device) {
  const c10::DeviceGuard guard(device);
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

Access overwriting(const at::Tensor& tensor) {
  return covers_its_storage(tensor) ? Access::kOverwrite : Access::kWrite;
}

DeviceAddresses::DeviceAddresses() {
  if (has_offload_runtime()) lock_ = std::unique_lock<std::mutex>(offload_mutex());
}

void* DeviceAddresses::of(const at::Tensor& tensor, Access access, const char* cause) {
  if (MirroredStorage* const storage = mirrored(tensor.storage()))
    storage->use_on_device(lock_, access, cause);
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return writes(access) ? impl.mutable_data() : const_cast<void*>(impl.data());
}

}  // namespace torch_lazy
