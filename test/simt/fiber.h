// A thread of a block: a stack of its own, run in turn with the others on the calling thread.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace torch_lazy::simt {

class Fiber {
 public:
  // `stack` outlives the fiber's run.
  void start(char* stack, size_t bytes, void (*function)(void*), void* argument);
  // Runs it until it suspends itself or its function returns.
  void resume();
  // Called on the fiber: goes back to who resumed it.
  void suspend();
  bool holds(const void* address) const { return address >= stack_ && address < stack_ + bytes_; }

 private:
  static void enter(Fiber* fiber);
  static void enter_first();

  char* stack_ = nullptr;
  size_t bytes_ = 0;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
#if defined(__x86_64__)
  void* own_ = nullptr;  // stack pointers of who does not run
  void* resumer_ = nullptr;
#else
  ucontext_t own_, resumer_;
#endif
};

}  // namespace torch_lazy::simt
