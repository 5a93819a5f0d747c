#include "runtime/step_profile.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;

// Sets of operations, each named by one of them.
class Parts {
 public:
  int64_t find(int64_t operation) {
    int64_t& parent = parents_.try_emplace(operation, operation).first->second;
    if (parent == operation) return operation;
    const int64_t root = find(parent);
    parents_[operation] = root;
    return root;
  }
  void join(int64_t a, int64_t b) { parents_[find(a)] = find(b); }

 private:
  std::unordered_map<int64_t, int64_t> parents_;
};

// How much longer kernels have to take than what they replaced: a part that is about equal is not
// worth another compile.
constexpr double kFactor = 1.1;

}  // namespace

void StepProfile::add(const std::vector<StepTime>& run) {
  if (steps_.empty()) {
    for (const StepTime& step : run) steps_.push_back({step.operations.vec(), step.time});
    runs_ = size_t(!run.empty());
    return;
  }
  if (run.size() != steps_.size()) return;
  ++runs_;
  for (size_t i = 0; i < run.size(); ++i) steps_[i].time = std::min(steps_[i].time, run[i].time);
}

LosingOperations losing_operations(const StepProfile& kernels, const StepProfile& library) {
  Parts parts;
  for (const StepProfile& profile : {kernels, library})
    for (const StepProfile::Step& step : profile.steps())
      for (const int64_t operation : step.operations)
        parts.join(operation, step.operations.front());
  struct Cost {
    nanoseconds kernels{0}, library{0};
  };
  std::map<int64_t, Cost> costs;
  for (const StepProfile::Step& step : kernels.steps())
    if (!step.operations.empty()) costs[parts.find(step.operations.front())].kernels += step.time;
  for (const StepProfile::Step& step : library.steps())
    if (!step.operations.empty()) costs[parts.find(step.operations.front())].library += step.time;
  LosingOperations losing{{}, nanoseconds(0)};
  const auto loses = [](const Cost& cost) {
    return double(cost.kernels.count()) > kFactor * double(cost.library.count());
  };
  for (const auto& [part, cost] : costs)
    if (loses(cost)) losing.saved += cost.kernels - cost.library;
  for (const StepProfile::Step& step : library.steps())
    for (const int64_t operation : step.operations)
      if (loses(costs[parts.find(operation)])) losing.operations.push_back(operation);
  return losing;
}

}  // namespace torch_lazy
