// Operators that other libraries define, before this one was loaded or after.
#pragma once

#include <atomic>

namespace torch_lazy {

// Has every operator that is defined from now on looked at, and those that are there already, by
// the next look_at_new_operators().
void watch_for_new_operators();

namespace new_operators {
extern std::atomic<bool> are_there;
void register_those_whole_on_the_cpu();
}  // namespace new_operators

// Once for each call of an operator: what an import brought is noticed before it is called. Without
// a lock of the library.
inline void look_at_new_operators() {
  if (new_operators::are_there.load(std::memory_order_relaxed)) [[unlikely]]
    new_operators::register_those_whole_on_the_cpu();
}

}  // namespace torch_lazy
