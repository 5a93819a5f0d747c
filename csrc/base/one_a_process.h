// State that a process shares, and that a forked child must not take over.
#pragma once

#include <pthread.h>

#include <atomic>

namespace torch_lazy {

// The process's T. A child may have been forked with its locks held and its work half done, so it
// gets a new one. Never destroyed: other threads may use it while the process exits.
template <typename T>
T& one_a_process() {
  static auto* const slot = new std::atomic<T*>(new T);
  static const int registered = pthread_atfork(nullptr, nullptr, [] { *slot = new T; });
  static_cast<void>(registered);
  return *slot->load();
}

}  // namespace torch_lazy
