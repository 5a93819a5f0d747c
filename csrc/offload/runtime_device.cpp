#include "offload/runtime_device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "backend/execution_device.h"
#include "backend/runtime_registration.h"
#include "offload/host_operators.h"
#include "offload/mirrored_storage.h"

namespace torch_lazy {
namespace {

// Set once, when a backend with a runtime is first made.
constinit std::atomic<DeviceRuntime*> registered_runtime{nullptr};

constinit std::atomic<int64_t> allocated_bytes{0}, peak_bytes{0};

struct Block {
  void* address;
  int64_t bytes;
};

void free_block(void* context) {
  const auto* const block = static_cast<Block*>(context);
  allocated_bytes.fetch_sub(block->bytes, std::memory_order_relaxed);
  offload_runtime().free(block->address);
  delete block;
}

void count_allocated(int64_t bytes) {
  const int64_t now = allocated_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

struct CountingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device here = RuntimeGuard::device(-1);
    if (bytes == 0) return {nullptr, here};
    auto block = std::make_unique<Block>(Block{nullptr, int64_t(bytes)});
    block->address = allocated_by(offload_runtime(), here, bytes);
    count_allocated(block->bytes);
    void* const address = block->address;
    return {address, block.release(), &free_block, here};
  }
  // A block is more than its address.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const c10::DeviceIndex index = RuntimeGuard::device(-1).index();
    if (bytes > 0) offload_runtime().copy(index, to, from, bytes);
  }
};

// Only a block of its own: a slice of another storage is memory that is mirrored there.
c10::intrusive_ptr<c10::StorageImpl> make_mirrored(c10::StorageImpl::use_byte_size_t by_bytes,
                                                   c10::SymInt bytes, c10::DataPtr memory,
                                                   c10::Allocator* allocator, bool resizable) {
  if (memory.get() != nullptr && memory.get_deleter() != &free_block)
    return c10::make_intrusive<c10::StorageImpl>(by_bytes, std::move(bytes), std::move(memory),
                                                 allocator, resizable);
  return c10::make_intrusive<MirroredStorage>(by_bytes, std::move(bytes), std::move(memory),
                                              allocator, resizable);
}

struct MirroredHooks final : RuntimeHooks {
  using RuntimeHooks::RuntimeHooks;

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    MirroredStorage* const own = mirrored(storage);
    TORCH_CHECK(own, "cannot resize a storage on ", storage.device(), " that came from outside");
    own->resize(bytes);
  }
};

}  // namespace

void register_runtime_device(DeviceRuntime& runtime) {
  static std::mutex registering;
  const std::lock_guard lock(registering);
  DeviceRuntime* const before = registered_runtime;
  if (before == &runtime) return;
  const std::string name = runtime.type_name();
  TORCH_CHECK(!before, "device '", name, "' cannot be made: this process has device '",
              before ? before->type_name() : "",
              "' already, and PyTorch one such device a process");
  static CountingAllocator allocator;
  register_runtime(runtime, allocator, *new MirroredHooks(runtime));
  c10::SetStorageImplCreate(c10::kPrivateUse1, &make_mirrored);
  register_host_operators();
  registered_runtime = &runtime;
}

DeviceRuntime& offload_runtime() {
  DeviceRuntime* const runtime = registered_runtime.load(std::memory_order_acquire);
  TORCH_CHECK(runtime, "no backend has brought a runtime for its device");
  return *runtime;
}

bool has_offload_runtime() {
  return registered_runtime.load(std::memory_order_acquire) != nullptr;
}

bool is_offloaded() {
  return has_offload_runtime() && execution_device().type == c10::kPrivateUse1;
}

OffloadMemory offload_memory() {
  return {allocated_bytes.load(std::memory_order_relaxed),
          peak_bytes.load(std::memory_order_relaxed)};
}

void reset_peak_offload_memory() {
  peak_bytes.store(allocated_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace torch_lazy
