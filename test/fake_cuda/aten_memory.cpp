#include "fake_cuda/aten_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "fake_cuda/aten_driver.h"

namespace torch_lazy::fake_cuda {
namespace {

constexpr int kUninitialized = 0xff;

using Streams = std::set<CUstream>;

// Calls `then` when all streams have done what they hold now. That is within the driver and under
// its lock: `then` may call neither the driver nor Python.
void when_passed(const Streams& streams, std::function<void()> then) {
  struct Countdown {
    std::atomic<size_t> left;
    std::function<void()> then;
  };
  auto* const countdown = new Countdown{streams.size(), std::move(then)};
  const auto passed = [](void* data) {
    auto* const of = static_cast<Countdown*>(data);
    if (--of->left > 0) return;
    of->then();
    delete of;
  };
  for (CUstream stream : streams) cuLaunchHostFunc(stream, passed, countdown);
}

// Addresses that streams have passed, for whoever comes by: the driver is not called from within.
class Passed {
 public:
  void add(void* address) {
    const std::lock_guard lock(mutex_);
    addresses_.push_back(address);
  }
  std::vector<void*> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(addresses_, {});
  }

 private:
  std::mutex mutex_;  // a leaf
  std::vector<void*> addresses_;
};

void count(c10::CachingAllocator::StatArray& of, int64_t change) {
  auto& stat = of[size_t(c10::CachingAllocator::StatType::AGGREGATE)];
  change >= 0 ? stat.increase(size_t(change)) : stat.decrease(size_t(-change));
}

class DeviceMemory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device = checked_device(0);
    if (bytes == 0) return {nullptr, device};
    ensure_context();
    return_passed();
    CUdeviceptr pointer = 0;
    const CUresult result = cuMemAlloc_v2(&pointer, bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY,
                     "CUDA out of memory. Tried to allocate ", bytes, " bytes.");
    check(result);
    void* const address = reinterpret_cast<void*>(pointer);
    std::memset(address, kUninitialized, bytes);
    const std::lock_guard lock(mutex_);
    blocks_.emplace(address, Block{bytes, current_stream(), {}});
    note(int64_t(bytes));
    return {address, address, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    if (bytes == 0) return;
    ensure_context();
    check(cuMemcpyDtoDAsync_v2(device_address(to), device_address(from), bytes, current_stream()));
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    ensure_context();
    return_passed();
  }
  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory.get_context());
    if (found != blocks_.end()) found->second.others.insert(handle_of(stream));
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    checked_device(index);
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    for_each_stat([](auto& stat) { stat.reset_accumulated(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const auto stats = getDeviceStats(index);
    const auto used = stats.allocated_bytes[size_t(c10::CachingAllocator::StatType::AGGREGATE)];
    size_t all = 0;
    check(cuDeviceTotalMem_v2(&all, 0));
    return {all - size_t(used.current), all};
  }
  void resetPeakStats(c10::DeviceIndex) override {
    for_each_stat([](auto& stat) { stat.reset_peak(); });
  }

 private:
  struct Block {
    size_t bytes;
    CUstream stream;  // that was current when it was allocated
    Streams others;
  };

  static void free_block(void* address) {
    static_cast<DeviceMemory&>(device_allocator()).free(address);
  }

  // May run while the process ends, or in a forked child, which has no device: errors say nothing.
  void free(void* address) {
    std::unique_lock lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    Block block = std::move(found->second);
    blocks_.erase(found);
    note(-int64_t(block.bytes));
    block.others.erase(block.stream);
    if (!block.others.empty()) waiting_.emplace(address, block.stream);
    lock.unlock();

    try {
      ensure_context();
    } catch (const c10::Error&) {
      return;
    }
    if (block.others.empty()) {
      cuMemFreeAsync(device_address(address), block.stream);
      return;
    }
    block.others.insert(block.stream);
    when_passed(block.others, [this, address] { passed_.add(address); });
  }

  void return_passed() {
    for (void* const address : passed_.take()) {
      std::unique_lock lock(mutex_);
      const CUstream stream = waiting_.extract(address).mapped();
      lock.unlock();
      check(cuMemFreeAsync(device_address(address), stream));
    }
  }

  void note(int64_t bytes) {
    const int64_t one = bytes >= 0 ? 1 : -1;
    for (auto* of : {&stats_.allocation, &stats_.segment, &stats_.active}) count(*of, one);
    for (auto* of : {&stats_.allocated_bytes, &stats_.reserved_bytes, &stats_.active_bytes,
                     &stats_.requested_bytes}) {
      count(*of, bytes);
    }
    ++(bytes >= 0 ? stats_.num_device_alloc : stats_.num_device_free);
  }

  template <class Change>
  void for_each_stat(const Change& change) {
    const std::lock_guard lock(mutex_);
    for (auto* of : {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.allocated_bytes,
                     &stats_.reserved_bytes, &stats_.active_bytes, &stats_.requested_bytes}) {
      for (auto& stat : *of) change(stat);
    }
  }

  // Guards what follows. The driver is not called under it.
  std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  std::map<const void*, CUstream> waiting_;  // freed; other streams may use it still
  c10::CachingDeviceAllocator::DeviceStats stats_;
  Passed passed_;
};

class HostMemory final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::kCPU};
    ensure_context();
    std::unique_lock lock(mutex_);
    for (void* const address : passed_.take()) blocks_.at(address).free = true;
    void* address = find_free(bytes);
    if (address == nullptr) {
      lock.unlock();
      check(cuMemHostAlloc(&address, bytes, 0));
      lock.lock();
      blocks_[address].bytes = bytes;
      ++stats_.num_host_alloc;
    }
    blocks_.at(address).free = false;
    return {address, address, &free_block, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  bool record_event(void*, void* context, c10::Stream stream) override {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(context);
    if (found == blocks_.end()) return false;
    found->second.streams.insert(handle_of(stream));
    return true;
  }
  // Waits for the device.
  void empty_cache() override {
    std::vector<void*> unused;
    {
      const std::lock_guard lock(mutex_);
      for (void* const address : passed_.take()) blocks_.at(address).free = true;
      for (auto& [address, block] : blocks_) {
        if (block.free) unused.push_back(const_cast<void*>(address));
      }
      for (void* const address : unused) blocks_.erase(address);
    }
    ensure_context();
    for (void* const address : unused) check(cuMemFreeHost(address));
  }
  at::HostStats get_stats() override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

  bool holds(const void* address) {
    const std::lock_guard lock(mutex_);
    auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) return false;
    const auto& [begin, block] = *std::prev(next);
    return static_cast<const char*>(address) < static_cast<const char*>(begin) + block.bytes;
  }

 private:
  struct Block {
    size_t bytes = 0;
    Streams streams;
    bool free = false;
  };

  static void free_block(void* address) {
    static_cast<HostMemory&>(host_allocator()).free(address);
  }

  void free(void* address) {
    std::unique_lock lock(mutex_);
    Block& block = blocks_.at(address);
    const Streams streams = std::exchange(block.streams, {});
    block.free = streams.empty();
    lock.unlock();
    if (!streams.empty()) when_passed(streams, [this, address] { passed_.add(address); });
  }

  // The least that fits, but no more than twice what is wanted.
  void* find_free(size_t bytes) {
    const void* best = nullptr;
    size_t best_bytes = 2 * bytes + 1;
    for (const auto& [address, block] : blocks_) {
      if (!block.free || block.bytes < bytes || block.bytes >= best_bytes) continue;
      best = address;
      best_bytes = block.bytes;
    }
    return const_cast<void*>(best);
  }

  // Guards what follows. The driver is not called under it.
  std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  at::HostStats stats_;
  Passed passed_;
};

}  // namespace

// Neither is ever destroyed: tensors may outlive whatever would.
c10::DeviceAllocator& device_allocator() {
  static auto* const made = new DeviceMemory;
  return *made;
}

at::HostAllocator& host_allocator() {
  static auto* const made = new HostMemory;
  return *made;
}

bool is_pinned(const void* address) {
  return static_cast<HostMemory&>(host_allocator()).holds(address);
}

void resize(const c10::Storage& storage, size_t bytes) {
  c10::DataPtr memory = device_allocator().allocate(bytes);
  const size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) device_allocator().copy_data(memory.get(), storage.data(), kept);
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

namespace {

const bool allocators_registered = [] {
  c10::SetAllocator(c10::kCUDA, &device_allocator());
  at::setHostAllocator(c10::kCUDA, &host_allocator());
  return true;
}();

}  // namespace
}  // namespace torch_lazy::fake_cuda
