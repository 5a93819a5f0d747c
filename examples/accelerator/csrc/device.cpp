#include "device.h"

#include <c10/util/Exception.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accelerator {
namespace {

constexpr std::size_t kCapacity = std::size_t{1} << 36;  // Addresses; pages come with first use.

struct Device {
  Device();
  void perform_commands();

  char* memory;                    // The device addresses, which nobody may access.
  char* accessed;                  // The same memory, where the device's thread works.
  const pid_t process = getpid();  // Whose thread it is: a forked one has the memory alone.

  std::mutex mutex;  // Guards what follows.
  std::size_t reserved = 0;
  std::unordered_map<void*, std::size_t> sizes;           // Of every block there is.
  std::map<std::size_t, std::vector<void*>> free_blocks;  // By size.
  std::deque<std::function<void()>> commands;
  Event enqueued = 0, completed = 0;
  std::condition_variable work, progress;
  std::exception_ptr failure;  // The first since the last wait.
  Faults faults;
  std::minstd_rand random;
};

// Never destroyed: tensors may outlive whatever would destroy it.
Device& device() {
  static Device& instance = *new Device();
  return instance;
}

bool on_device(const void* address) {
  return address >= device().memory && address < device().memory + kCapacity;
}

struct sigaction previous_action;

// The access is repeated when this returns, and then ends as it would have without this.
void explain_fault(int, siginfo_t* fault, void*) {
  constexpr char message[] =
      "accel: the host accessed device memory. The data_ptr() of the device's tensors is a device "
      "address: copy the tensor to the CPU, or access it in a command.\n";
  if (on_device(fault->si_addr)) std::ignore = write(STDERR_FILENO, message, sizeof message - 1);
  sigaction(SIGSEGV, &previous_action, nullptr);
}

Device::Device() {
  const int file = memfd_create("accelerator", MFD_CLOEXEC);
  const auto map = [file](int protection) {
    return static_cast<char*>(
        mmap(nullptr, kCapacity, protection, MAP_SHARED | MAP_NORESERVE, file, 0));
  };
  const bool reserved = ftruncate(file, kCapacity) == 0;
  memory = map(PROT_NONE);
  accessed = map(PROT_READ | PROT_WRITE);
  close(file);
  TORCH_CHECK(reserved && memory != MAP_FAILED && accessed != MAP_FAILED, "accel: cannot reserve ",
              kCapacity, " bytes of addresses: ", std::strerror(errno));
  struct sigaction action = {};
  action.sa_sigaction = &explain_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &previous_action);
  std::thread([this] { perform_commands(); }).detach();
}

void Device::perform_commands() {
  for (std::unique_lock lock(mutex);;) {
    work.wait(lock, [this] { return !commands.empty(); });
    auto command = std::move(commands.front());
    commands.pop_front();
    const bool fails = faults.failing_command > 0 && --faults.failing_command == 0;
    const std::chrono::microseconds delay(random() % (faults.longest_delay + 1));
    lock.unlock();
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    std::exception_ptr error;
    try {
      TORCH_CHECK(!fails, "accel: this command was to fail");
      command();
    } catch (...) {
      error = std::current_exception();
    }
    command = nullptr;  // What it captured is gone before anyone learns that it has run.
    lock.lock();
    if (!failure) failure = std::move(error);
    ++completed;
    progress.notify_all();
  }
}

}  // namespace

void* allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  Device& on = device();
  const std::lock_guard lock(on.mutex);
  const auto size = std::bit_ceil(std::clamp(bytes, std::size_t{64}, kCapacity));
  auto& blocks = on.free_blocks[size];
  const bool fails = on.faults.failing_allocation > 0 && --on.faults.failing_allocation == 0;
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      !fails && bytes <= kCapacity && (!blocks.empty() || on.reserved + size <= kCapacity),
      "accel: out of memory: ", bytes, " bytes are wanted, and ", on.reserved, " of ", kCapacity,
      " are taken", fails ? " (this allocation was to fail)" : "");
  if (blocks.empty()) {
    blocks.push_back(on.memory + on.reserved);
    on.sizes.emplace(blocks.back(), size);
    on.reserved += size;
  }
  void* address = blocks.back();
  blocks.pop_back();
  return address;
}

void free(void* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(device().mutex);
  device().free_blocks[device().sizes.at(address)].push_back(address);
}

void* in_command(const void* address) {
  const auto* memory = static_cast<const char*>(address);
  if (on_device(address)) memory += device().accessed - device().memory;
  return const_cast<char*>(memory);
}

void enqueue(std::function<void()> command) {
  Device& on = device();
  TORCH_CHECK(on.process == getpid(), "accel: a forked process has no device; start it with spawn");
  const std::lock_guard lock(on.mutex);
  on.commands.push_back(std::move(command));
  ++on.enqueued;
  on.work.notify_one();
}

void copy(void* destination, const void* source, std::size_t bytes) {
  enqueue([to = in_command(destination), from = in_command(source), bytes] {
    if (bytes > 0) std::memmove(to, from, bytes);
  });
}

Event record() {
  const std::lock_guard lock(device().mutex);
  return device().enqueued;
}

bool query(Event event) {
  const std::lock_guard lock(device().mutex);
  return device().completed >= event;
}

void wait(Event event) {
  Device& on = device();
  std::unique_lock lock(on.mutex);
  on.progress.wait(lock, [&] { return on.completed >= event; });
  if (on.failure) std::rethrow_exception(std::exchange(on.failure, nullptr));
}

void inject(Faults faults) {
  const std::lock_guard lock(device().mutex);
  device().faults = faults;
  device().random.seed(static_cast<unsigned>(faults.seed));
}

}  // namespace accelerator
