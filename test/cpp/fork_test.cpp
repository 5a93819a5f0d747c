// What a forked child finds: no lock of another thread, no work half done.

#include "base/fork.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "backend/cpu/kernel_compiler.h"
#include "runtime/execution_lock.h"

namespace torch_lazy {
namespace {

// Whether `check` holds in a child. One that hangs is ended, and counts as false.
bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(check() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

// Calls `work` again and again on a thread of its own.
class BusyThread {
 public:
  explicit BusyThread(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          while (!stop_) work();
        }) {}
  ~BusyThread() {
    stop_ = true;
    thread_.join();
  }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(Fork, AChildInheritsNoLockFromAnotherThread) {
  static auto* const mutex = new ForkSafeMutex(LockOrder::kLeaf);
  const BusyThread busy([] { const std::lock_guard<std::mutex> lock(*mutex); });

  for (int i = 0; i < 50; ++i) EXPECT_TRUE(holds_in_child([] { return mutex->try_lock(); }));
}

TEST(Fork, HandlersRunInTheOrderOfLocksAndInReverseAfterwards) {
  static std::string log;
  const auto log_as = [](LockOrder order, const std::string& name) {
    register_at_fork(
        order, [name] { log += name + ' '; }, [name](bool) { log += '/' + name + ' '; });
  };
  log_as(LockOrder::kMemory, "memory");
  log_as(LockOrder::kRecording, "recording");
  log_as(LockOrder::kKernels, "kernels");
  const std::string expected = "recording kernels memory /memory /kernels /recording ";

  log.clear();
  EXPECT_TRUE(holds_in_child([&] { return log == expected; }));

  EXPECT_EQ(log, expected);
}

TEST(Fork, WorkIsAtASafePoint) {
  std::atomic<bool> in_the_middle{false};
  const BusyThread busy([&] {
    const PausableWork work;
    for (int i = 0; i < 10; ++i) {
      in_the_middle = true;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      in_the_middle = false;
      safe_point_for_fork();
    }
  });

  for (int i = 0; i < 50; ++i)
    EXPECT_TRUE(holds_in_child([&] { return forked_at_safe_point() && !in_the_middle; }));
}

TEST(Fork, WorkGoesOnAfterwards) {
  std::atomic<int> done{0};
  const BusyThread busy([&] {
    const PausableWork work;
    ++done;
  });

  EXPECT_TRUE(holds_in_child([] { return true; }));

  const int before = done;
  while (done == before) std::this_thread::yield();
}

TEST(Fork, WorkThatWaitsForSomethingElseIsNotWaitedFor) {
  std::atomic<bool> waiting{false}, stop{false};
  std::thread blocked([&] {
    const PausableWork work;
    const BlockedWork wait;
    waiting = true;
    while (!stop) std::this_thread::yield();
  });
  while (!waiting) std::this_thread::yield();

  EXPECT_TRUE(holds_in_child(forked_at_safe_point));

  stop = true;
  blocked.join();
}

TEST(Fork, OverdueWorkIsNotWaitedFor) {
  std::atomic<bool> working{false}, stop{false};
  std::thread thread([&] {
    const PausableWork hangs;
    const OverdueWork overdue;
    working = true;
    while (!stop) std::this_thread::yield();
  });
  while (!working) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();

  EXPECT_TRUE(holds_in_child([] { return !forked_at_safe_point() && !has_overdue_work(); }));

  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  stop = true;
  thread.join();
}

TEST(Fork, WorkWithoutASafePointIsNotWaitedForLong) {
  std::atomic<bool> working{false}, stop{false};
  std::thread busy([&] {
    const PausableWork work;
    working = true;
    while (!stop) std::this_thread::yield();
  });
  while (!working) std::this_thread::yield();

  set_patience_of_forks(std::chrono::milliseconds(20));
  EXPECT_TRUE(holds_in_child([] { return !forked_at_safe_point(); }));
  set_patience_of_forks(std::chrono::seconds(5));

  stop = true;
  busy.join();
}

TEST(Fork, AChildWorksOfItsOwn) {
  const BusyThread busy([] { const PausableWork work; });

  EXPECT_TRUE(holds_in_child([] {
    const PausableWork work;
    return holds_in_child(forked_at_safe_point);
  }));
}

TEST(Fork, AChildTakesOverTheLockOfAnExecutableThatItsParentRuns) {
  ExecutionLock lock;
  std::atomic<bool> held{false}, stop{false};
  std::thread runs([&] {
    const std::lock_guard running(lock);
    held = true;
    while (!stop) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();

  EXPECT_TRUE(holds_in_child([&] {
    lock.lock();
    lock.unlock();
    return true;
  }));

  stop = true;
  runs.join();
}

// A kernel that writes `value`, with enough in it for a compile of some milliseconds.
std::string kernel_writing(int value) {
  std::string source =
      "extern \"C\" void kernel(void* const* p, const long* s, const double* n, long b, long e) {\n"
      "  float* y = static_cast<float*>(p[0]);\n  float x = 0;\n";
  for (int i = 0; i < 100; ++i) source += "  x += x * n[0] + " + std::to_string(i) + ";\n";
  return source + "  y[0] = x * 0 + " + std::to_string(value) + ";\n}\n";
}

bool kernel_writes(int value) {
  const auto kernel = compile_kernel(kernel_writing(value), "kernel");
  float result = 0;
  void* const pointers[] = {&result};
  const double number = 1;
  kernel->function(pointers, nullptr, &number, 0, 1);
  return result == float(value);
}

TEST(Fork, AChildUsesKernelsAndCompilesMoreThoughItsParentIsCompiling) {
  ASSERT_TRUE(kernel_writes(0));
  int next = 1;
  const BusyThread compiling([&] { kernel_writes(next++); });

  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(700 * i % 5000));
    EXPECT_TRUE(holds_in_child([] { return kernel_writes(0) && kernel_writes(-1); })) << i;
  }
}

}  // namespace
}  // namespace torch_lazy
