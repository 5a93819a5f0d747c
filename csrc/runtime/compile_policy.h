// When a warm trace is worth compiling.
//
// With a core to spare at once: the compile costs the script nothing. Where the script's threads
// take all cores, or there is but one, it pays for every compile, and a trace that is seen twice
// need not be seen again: there it is put off until the script has spent as long in windows of the
// trace as the compile will take. Whatever comes then, they take no more than about twice what they
// would without, and a script that goes on for long is no later than by that.
//
// Some scripts make traces that are recorded a few times and never again: the layers of a network
// that is given one more token each time. The more compiled traces have not run, the more
// recordings the next one has to have.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace torch_lazy {

// `recordings` of the trace since it became warm, and how long the script has been in them.
bool compiling_pays(size_t operations, int64_t recordings, std::chrono::nanoseconds spent,
                    bool core_to_spare);

// What compiles have cost so far is how the next one's cost is told.
void count_compiled(size_t operations);

// A trace has its first version, or runs for the first time.
void count_ready_trace();
void count_first_run();

}  // namespace torch_lazy
