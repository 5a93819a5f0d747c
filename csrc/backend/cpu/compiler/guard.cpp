#include "backend/cpu/compiler/guard.h"

#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <signal.h>
#include <time.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace torch_lazy::compiler {
namespace {

// Clang recurses along nested expressions; generated code may nest deeply. Few enough for the C
// library to keep the stack for the next thread.
constexpr unsigned kStackBytes = 16 << 20;
constexpr size_t kSignalStackBytes = 64 << 10;
constexpr int kGaveUp = 70;  // HandleExit's argument; crashes are 128 + signal

struct Guarded {
  std::chrono::nanoseconds time_limit;
  void (*safe_point)();
  std::string failure;  // said by who gives up; empty after a crash
};

thread_local Guarded* current = nullptr;

[[noreturn]] void give_up(std::string why) {
  llvm::CrashRecoveryContext* context = llvm::CrashRecoveryContext::GetCurrent();
  if (current == nullptr || context == nullptr) std::abort();
  current->failure = std::move(why);
  context->HandleExit(kGaveUp);
}

void on_fatal_error(void*, const char* reason, bool) {
  give_up(std::string("the compiler stopped: ") + reason);
}

// The signals that LLVM's recovery handles. A process has one handler a signal, so they are taken
// over while any compile runs and given back with the last.
class ScopedCrashHandlers {
 public:
  ScopedCrashHandlers() {
    const std::lock_guard<std::mutex> lock(mutex());
    if (users++ > 0) return;
    llvm::CrashRecoveryContext::Enable();
    // A stack that overflowed cannot carry the handler.
    for (int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP}) {
      struct sigaction action;
      if (sigaction(number, nullptr, &action) != 0) continue;
      action.sa_flags |= SA_ONSTACK;
      sigaction(number, &action, nullptr);
    }
  }
  ~ScopedCrashHandlers() {
    const std::lock_guard<std::mutex> lock(mutex());
    if (--users == 0) llvm::CrashRecoveryContext::Disable();
  }
  ScopedCrashHandlers(const ScopedCrashHandlers&) = delete;
  ScopedCrashHandlers& operator=(const ScopedCrashHandlers&) = delete;

 private:
  static std::mutex& mutex() {  // guards users
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static inline int users = 0;
};

}  // namespace

bool run_guarded(llvm::function_ref<void()> work, int64_t time_limit_ns, void (*safe_point)(),
                 std::string& failure) {
  static const bool installed = (llvm::install_fatal_error_handler(on_fatal_error), true);
  static_cast<void>(installed);
  Guarded guarded{std::chrono::nanoseconds(time_limit_ns), safe_point, ""};
  const ScopedCrashHandlers handlers;
  llvm::CrashRecoveryContext context;
  const bool finished = context.RunSafelyOnThread(
      [&] {
        std::array<char, kSignalStackBytes> signal_stack;  // lives as long as the thread's work
        stack_t stack{};
        stack.ss_sp = signal_stack.data();
        stack.ss_size = signal_stack.size();
        sigaltstack(&stack, nullptr);
        current = &guarded;
        work();
        stack.ss_flags = SS_DISABLE;
        sigaltstack(&stack, nullptr);
      },
      kStackBytes);
  if (finished) return true;
  failure = std::move(guarded.failure);
  if (failure.empty()) {
    const int number = context.RetCode - 128;
    failure = "the compiler crashed with signal " + std::to_string(number);
    if (const char* name = sigabbrev_np(number)) failure += std::string(" (SIG") + name + ")";
  }
  return false;
}

std::chrono::nanoseconds processor_time() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

void reach_safe_point() {
  if (current == nullptr) return;
  if (current->safe_point != nullptr) current->safe_point();
  if (processor_time() > current->time_limit) give_up("the time limit for one compile is over");
}

}  // namespace torch_lazy::compiler
