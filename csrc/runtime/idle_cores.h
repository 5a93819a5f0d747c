// Whether the machine leaves a core idle, on which compiles cost the script nothing.
//
// Measured, not told from settings: PyTorch has a team of as many threads as there are cores, of
// which a script of small tensors uses one, and one of large tensors all, which look for work
// between operations as well. Other processes, a loader's and the other ranks, take cores too.
// Nor does a core count as idle that a limit of processor time, a container's, keeps from being
// used (runtime/processor_quota.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/processor_quota.h"

namespace torch_lazy {

// The process's main thread may run on one core only.
bool runs_on_one_core();

// Since the last look, a tenth of a second ago at least, a core was idle that the main thread may
// use. What compiles take counts as idle, and while one is under way the last answer stands. No
// until there is a second look; no on one core: whatever the script waits for, it goes on where a
// compile is. Where the system does not tell, yes on more. Any thread; under a microsecond, but for
// looks.
bool has_idle_core();

// Of the compile thread, around each compile.
void note_compile_begins();
void note_compile_ends();

// Time in which cores were idle, of those whose numbers are given in order, by the text of
// /proc/stat (man 5 proc_stat); nothing where it does not tell. It counts in hundredths of a
// second.
std::optional<std::chrono::nanoseconds> idle_time(std::string_view proc_stat,
                                                  const std::vector<int>& cores);

// Whether `cores`, which were idle for `idle` together, had one that was idle for most of
// `elapsed`.
bool had_idle_core(double cores, std::chrono::nanoseconds idle, std::chrono::nanoseconds elapsed);

// What limits of processor time allow and nobody used is as good as idle cores: whether each left
// one. `compiled`: processor time of compiles, which is theirs to take. No where the limits are
// others than before.
bool quotas_left_a_core(const std::vector<ProcessorQuota>& before,
                        const std::vector<ProcessorQuota>& now, std::chrono::nanoseconds compiled,
                        std::chrono::nanoseconds elapsed);

}  // namespace torch_lazy
