#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/thread_pool.h>

#include <torch_lazy/backend/device_runtime.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

/// The driver: memory that the host cannot touch, and commands that run later.
namespace accelerator {

/// What a device address has and no address of a process: the host faults where it follows one.
constexpr std::uintptr_t kOnDevice = std::uintptr_t{1} << 55;

/// Where commands find what is at a device address; a host address stays as it is.
inline void* in_command(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~kOnDevice);
}

/// What goes wrong on purpose: the n-th command or allocation from here on, 0 being none, and
/// commands that start late, by random times of at most so many microseconds.
struct Faults {
  std::int64_t failing_command = 0, failing_allocation = 0, longest_delay = 0;
  std::minstd_rand random = {};
};

/// The device's memory, and the queue whose commands one thread performs in order. It says that it
/// is two devices, which share both: enough to tell them apart.
class Device final : public torch_lazy::DeviceRuntime {
 public:
  using Index = c10::DeviceIndex;
  using Command = std::function<void()>;

  std::string type_name() const override { return "accel"; }
  Index device_count() const override { return 2; }

  void* allocate(Index, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const bool fails = faults_.failing_allocation > 0 && --faults_.failing_allocation == 0;
    void* memory = nullptr;
    if (!fails) memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    TORCH_CHECK_WITH(OutOfMemoryError, memory, "accel: out of memory: ", bytes, " bytes are wanted",
                     fails ? " (this allocation was to fail)" : "");
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) | kOnDevice);
  }

  /// Behind the commands that wait, which may use the memory still.
  void free(void* address) noexcept override {
    if (process_ == getpid()) queue_.run([address] { std::free(in_command(address)); });
  }

  /// Appends a command. What it throws is thrown by whoever waits next; the commands behind it run.
  /// In a command it runs at once, and there is nothing to wait for.
  void enqueue(Command command) {
    if (queue_.inThreadPool()) return command();
    TORCH_CHECK(process_ == getpid(), "accel: a forked process has no device; start it with spawn");
    command = named.load()([this, command = std::move(command)] { perform(command); });
    const std::lock_guard lock(mutex_);
    queue_.run([this, command = std::move(command)]() mutable { complete(std::move(command)); });
    ++enqueued_;
  }

  void copy(Index, void* to, const void* from, std::size_t bytes) override {
    enqueue(
        [to = in_command(to), from = in_command(from), bytes] { std::memmove(to, from, bytes); });
  }

  /// An event is a number of commands.
  std::uint64_t record_event(Index) override { return enqueued_; }
  bool is_done(Index, std::uint64_t event) override { return completed_ >= event; }
  void wait_for(Index, std::uint64_t event) override {
    if (queue_.inThreadPool()) return;
    for (std::uint64_t now; (now = completed_) < event;) completed_.wait(now);
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  void synchronize() { wait_for(0, enqueued_); }

  /// What makes failures of a command tell where it comes from: torch_lazy's where that is loaded.
  std::atomic<Command (*)(Command)> named{[](Command command) { return command; }};

  void inject(const Faults& faults) {
    const std::lock_guard lock(mutex_);
    faults_ = faults;
  }

 private:
  void perform(const Command& command) {
    std::unique_lock lock(mutex_);
    const bool fails = faults_.failing_command > 0 && --faults_.failing_command == 0;
    const std::chrono::microseconds delay(faults_.random() % (faults_.longest_delay + 1));
    lock.unlock();
    std::this_thread::sleep_for(delay);
    TORCH_CHECK(!fails, "accel: this command was to fail");
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    command();
  }

  void complete(Command command) {
    std::exception_ptr error;
    try {
      command();
    } catch (...) {
      error = std::current_exception();
    }
    command = nullptr;  // What it captured is gone before anyone learns that it has run.
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    ++completed_;
    completed_.notify_all();
  }

  const pid_t process_ = getpid();  // Whose thread it is: a fork has none.
  c10::ThreadPool queue_{1};
  std::atomic<std::uint64_t> enqueued_ = 0, completed_ = 0;
  std::mutex mutex_;            // Guards what follows, and that commands are counted in order.
  std::exception_ptr failure_;  // The first since the last wait.
  Faults faults_;
};

Device& device();  // The one there is.

}  // namespace accelerator
