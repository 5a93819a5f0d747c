#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

/// The driver: memory that the host cannot touch, and one queue of commands that the device's
/// thread performs in order. A command may compute, and free what it held; all else is for the
/// host's threads.
namespace accelerator {

/// A device address, a multiple of 64; null for no bytes. Commands that wait may still use what was
/// freed: whatever writes the block next waits behind them. Throws c10::OutOfMemoryError.
void* allocate(std::size_t bytes);
void free(void* address);

/// Where commands find the memory at a device address, at which the host faults; a host address
/// stays as it is.
void* in_command(const void* address);

/// Appends a command and returns. What it refers to must live until it has run. An exception that
/// leaves it is thrown by the next `wait`; the commands behind it run.
void enqueue(std::function<void()> command);
/// Appends a copy between any two of host and device.
void copy(void* destination, const void* source, std::size_t bytes);

/// A place in the queue: how many commands are before it.
using Event = std::uint64_t;
Event record();
bool query(Event event);
void wait(Event event);
inline void synchronize() {
  wait(record());
}

/// What goes wrong on purpose: the n-th command or allocation from here on, 0 being none, and
/// commands that start late, by random times.
struct Faults {
  std::uint64_t failing_command = 0, failing_allocation = 0;
  std::uint64_t longest_delay = 0;  // In microseconds.
  std::uint64_t seed = 0;
};
void inject(Faults faults);

}  // namespace accelerator
