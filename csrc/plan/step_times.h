// What the steps of a run cost: time, and the memory that they move.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "plan/plan.h"

namespace torch_lazy {

struct StepCost {
  std::string name;   // the kernel's or the operator's, "copy", "check"; empty for other steps
  int64_t bytes = 0;  // read and written; 0 where that is not known
};

// Of a step that is about to run on the values.
StepCost cost_of(const PlanStep& step, const Values& values);

// Steps of one run, by name. Times are those of the calling thread, which waits for the device.
class StepTimes {
 public:
  void add(const StepCost& cost, std::chrono::nanoseconds time);

  // The run's time, then a line a name, the longest time first:
  //   kernel_mul_sum  2 runs  0.045 ms  131072 bytes  2.91 GB/s
  std::string report(std::chrono::nanoseconds of_run) const;

 private:
  struct Total {
    int64_t runs = 0, bytes = 0;
    std::chrono::nanoseconds time{0};
  };
  std::map<std::string, Total> totals_;
};

}  // namespace torch_lazy
