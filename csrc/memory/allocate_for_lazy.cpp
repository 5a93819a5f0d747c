#include "memory/allocate_for_lazy.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>

#include "base/config.h"
#include "memory/caching_allocator.h"
#include "memory/memory_pool.h"

namespace torch_lazy {
namespace {

// From this size on an allocation costs more than a look at the clock.
constexpr size_t kLarge = size_t(1) << 20;

// PyTorch's CPU allocator from the first use of the device on. Outside AllocateForLazy each call
// goes to the one that was there before, and what it returns is passed on as it is.
class ChoosingAllocator final : public c10::Allocator {
 public:
  explicit ChoosingAllocator(CachingAllocator& caching) : caching_(caching) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (AllocateForLazy::active()) return caching_.allocate(bytes);
    // A program that has turned away from the device gives its memory back.
    if (bytes >= kLarge) MemoryPool::instance().age();
    return caching_.system().allocate(bytes);
  }
  bool is_simple_data_ptr(const c10::DataPtr& pointer) const override {
    return caching_.owns(pointer) ? caching_.is_simple_data_ptr(pointer)
                                  : caching_.system().is_simple_data_ptr(pointer);
  }
  // One for both, because the caller cannot know which one it was.
  c10::DeleterFnPtr raw_deleter() const override { return caching_.raw_deleter(); }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    caching_.system().copy_data(destination, source, bytes);
  }

 private:
  CachingAllocator& caching_;
};

}  // namespace

void AllocateForLazy::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    CachingAllocator& caching = CachingAllocator::instance();
    // At the default priority: an allocator that someone prefers to the default one stays, and one
    // that is set later replaces this.
    static auto* const choosing = new ChoosingAllocator(caching);
    if (config().allocator == AllocatorKind::kCaching) c10::SetCPUAllocator(choosing);
    installed_.store(true, std::memory_order_release);
  });
}

}  // namespace torch_lazy
