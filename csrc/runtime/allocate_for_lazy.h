// On whose behalf the thread's ATen allocates: inside AllocateForLazy, PyTorch's CPU allocator
// takes memory from the caching allocator.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_lazy {

class AllocateForLazy {
 public:
  enum class Result : uint8_t {
    kNone,       // outside
    kLazy,       // memory of a lazy tensor or of an operation on some
    kCopyOnCpu,  // of a CPU tensor with a lazy tensor's values: kept pages spare it the page
                 // faults, but memory_allocated() does not count it
  };

  explicit AllocateForLazy(Result result = Result::kLazy) : before_(result_) {
    if (!installed_.load(std::memory_order_acquire)) [[unlikely]]
      install();
    result_ = result;
  }
  ~AllocateForLazy() { result_ = before_; }
  AllocateForLazy(const AllocateForLazy&) = delete;
  AllocateForLazy& operator=(const AllocateForLazy&) = delete;

  static Result result() { return result_; }

 private:
  // Once a process, when the device is first used.
  static void install();

  inline static std::atomic<bool> installed_{false};
  // Threads of a kernel's own team do not see it: they allocate as before. The initial-exec model
  // saves a call of __tls_get_addr; glibc keeps room for small variables in libraries loaded late.
#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local Result result_ = Result::kNone;

  const Result before_;
};

}  // namespace torch_lazy
