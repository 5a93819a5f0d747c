// Whether the machine leaves cores idle, on which compiles cost the script nothing.
//
// Measured, not told from settings: PyTorch has a team of as many threads as there are cores, of
// which a script of small tensors uses one, and one of large tensors all, which look for work
// between operations as well. Other processes, a loader's and the other ranks, take cores too.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

namespace torch_lazy {

// The calling thread may run on one core only.
bool has_one_core();

// Of late a core was idle that the process may use; what its compile thread takes counts as idle.
// On one core there is none: whatever the script waits for, it goes on where a compile is. Where
// that is not known, to have more than one is enough. Measured from the first call on, so the
// answer is no for a tenth of a second. Any thread; under a microsecond, and the time to read a
// small file ten times a second at most.
bool has_core_to_spare();

// The calling thread is the process's compile thread.
void note_compile_thread();

// Time in which cores were idle, of those whose numbers are given in order, by the text of
// /proc/stat (man 5 proc_stat); nothing where it does not tell. It counts in hundredths of a
// second.
std::optional<std::chrono::nanoseconds> idle_time(std::string_view proc_stat,
                                                  const std::vector<int>& cores);

// How many cores were idle between two looks. Not for several threads at once.
class IdleCores {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // `idle`: the sum of all cores' time, at `now`.
  IdleCores(Nanoseconds now, Nanoseconds idle) : since_(now), idle_(idle) {}

  // Whether the last look is long enough ago for another.
  bool is_due(Nanoseconds now) const;
  void look(Nanoseconds now, Nanoseconds idle);
  bool has_one() const { return has_one_; }

 private:
  Nanoseconds since_, idle_;
  bool has_one_ = false;
};

}  // namespace torch_lazy
