// What the steps of two executables of one graph took, and which operations of the graph one of
// them does worse.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace torch_lazy {

// The least time of each step of an executable, over runs that were timed step by step.
class StepProfile {
 public:
  struct Step {
    std::vector<int64_t> operations;  // of the graph
    std::chrono::nanoseconds time;
  };
  // One run. A run of other steps than the first one's, as one that failed, is left out.
  void add(const std::vector<StepTime>& run);
  const std::vector<Step>& steps() const { return steps_; }
  size_t runs() const { return runs_; }

 private:
  size_t runs_ = 0;
  std::vector<Step> steps_;
};

struct LosingOperations {
  std::vector<int64_t> operations;  // in order
  std::chrono::nanoseconds saved;   // where they are library calls
};

// The operations that `kernels` does in more time than `library`, an executable whose steps are the
// operations one by one. Steps and operations that have one another in common are judged together,
// since what a kernel of several operations takes for each of them cannot be told.
LosingOperations losing_operations(const StepProfile& kernels, const StepProfile& library);

}  // namespace torch_lazy
