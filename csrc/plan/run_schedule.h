// When the steps of a plan are given to a device that runs behind the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace torch_lazy {

struct RunSchedule {
  // Steps that may be done while the program still records the window: those up to `end`, once the
  // first `nodes` nodes of the recorded graph are known to be what the program does, and these
  // inputs of the plan are there, and those of all stages before.
  struct Stage {
    size_t end;
    size_t nodes;
    std::vector<uint32_t> inputs;
  };

  // By step: kernels that were put off to be launched together are launched behind it. They are the
  // same kernels in every run, so that a launcher can keep what it made of them.
  std::vector<bool> launches_after;
  // In order. None where an input is written: whoever takes a step of those back has written
  // nothing that the program can see. None behind a step that makes the host wait for the device,
  // as far as a plan tells: a library call may.
  std::vector<Stage> early;
};

// Kernels are launched together, at most `most_together` of them, where the plan has no command of
// another kind between them.
RunSchedule schedule_run(const Plan& plan, size_t most_together);

}  // namespace torch_lazy
