// The ranges of steps in profiles.
#pragma once

#include <cstddef>
#include <optional>

#include "plan/step_times.h"
#include "profile/range.h"

namespace torch_lazy {

// From now to the end of the step, which is about to be performed on the values; none for steps
// without a cost (allocations, views, constants). The thread is in a run that is profiled.
class StepRange {
 public:
  StepRange(const PlanStep& step, const StepCost& cost, const Values& values);
  // Of a recorded operation that is run by itself: node `index` of what runs.
  StepRange(const Step& step, size_t index, const Values& values);

 private:
  std::optional<Range> range_;
};

}  // namespace torch_lazy
