#include "simt/fiber.h"

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#if defined(__x86_64__)

// Saves what a call preserves on the stack, keeps the stack's pointer at *save, and goes on where
// `load` was kept. swapcontext would do it too, with a system call for the signal mask, ten times
// the time.
extern "C" void simt_switch_stack(void** save, void* load);
asm(R"(
.text
.p2align 4
.hidden simt_switch_stack
.globl simt_switch_stack
.type simt_switch_stack, @function
simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch_stack, .-simt_switch_stack
)");

namespace torch_lazy::simt {
namespace {

// The fiber that is resumed: it takes its own address from here when it runs first.
thread_local Fiber* entering = nullptr;

}  // namespace

// Without AddressSanitizer, which looks for the thread's own stack where a call does not return.
__attribute__((no_sanitize("address"))) void Fiber::enter_first() {
  enter(entering);
}

void Fiber::start(char* stack, size_t bytes, void (*function)(void*), void* argument) {
  stack_ = stack;
  bytes_ = bytes;
  function_ = function;
  argument_ = argument;
#if defined(__SANITIZE_ADDRESS__)
  // A fiber that was left before its end has left its frames' marks.
  __asan_unpoison_memory_region(stack, bytes);
#endif
  auto top = reinterpret_cast<uintptr_t>(stack + bytes) / 16 * 16;
  auto* frame = reinterpret_cast<void**>(top) - 8;  // six registers, the entry, its return address
  for (int i = 0; i < 8; ++i) frame[i] = nullptr;
  frame[6] = reinterpret_cast<void*>(&Fiber::enter_first);
  own_ = frame;
}

void Fiber::resume() {
  entering = this;
  simt_switch_stack(&resumer_, own_);
}

void Fiber::suspend() {
  simt_switch_stack(&own_, resumer_);
}

}  // namespace torch_lazy::simt

#else

namespace torch_lazy::simt {

void Fiber::start(char* stack, size_t bytes, void (*function)(void*), void* argument) {
  stack_ = stack;
  bytes_ = bytes;
  function_ = function;
  argument_ = argument;
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack;
  own_.uc_stack.ss_size = bytes;
  own_.uc_link = nullptr;
  // makecontext passes integers only.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(+[](unsigned high, unsigned low) {
    enter(reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low));
  }),
              2, static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::resume() {
  swapcontext(&resumer_, &own_);
}

void Fiber::suspend() {
  swapcontext(&own_, &resumer_);
}

}  // namespace torch_lazy::simt

#endif

namespace torch_lazy::simt {

void Fiber::enter(Fiber* fiber) {
  fiber->function_(fiber->argument_);
  fiber->suspend();
  std::abort();  // who has ended is not resumed
}

}  // namespace torch_lazy::simt
