// On whose behalf the thread's ATen allocates: inside AllocateForLazy, PyTorch's CPU allocator
// takes memory from lazy_allocator().
#pragma once

#include <atomic>

namespace torch_lazy {

class AllocateForLazy {
 public:
  explicit AllocateForLazy(bool lazy = true) : before_(active_) {
    if (!installed_.load(std::memory_order_acquire)) [[unlikely]]
      install();
    active_ = lazy;
  }
  ~AllocateForLazy() { active_ = before_; }
  AllocateForLazy(const AllocateForLazy&) = delete;
  AllocateForLazy& operator=(const AllocateForLazy&) = delete;

  static bool active() { return active_; }

 private:
  // Once a process, when the device is first used.
  static void install();

  inline static std::atomic<bool> installed_{false};
  // Threads of a kernel's own team do not see it: they allocate as before. The initial-exec model
  // saves a call of __tls_get_addr; glibc keeps room for small variables in libraries loaded late.
#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local bool active_ = false;

  const bool before_;
};

}  // namespace torch_lazy
