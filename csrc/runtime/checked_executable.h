// Stands between the core and what a backend made: what the core relies on is checked at every run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace torch_lazy {

// What a run must return, as the graph says it. Made before the backend gets the graph, which it
// may change.
class ExpectedOutputs {
 public:
  explicit ExpectedOutputs(const torch::jit::Graph& graph);

  // Raises, naming the backend, for a result that would be read as something else than it is, or
  // beyond its memory. Costs a comparison of sizes and strides an output: nanoseconds, where a
  // window takes microseconds at least.
  void check(const RunResult& result, const std::string& backend) const;

 private:
  struct Output {
    c10::Device device;
    c10::ScalarType dtype;
    std::vector<int64_t> sizes, strides;
  };
  void check_output(size_t index, const at::Tensor& output, const std::string& backend) const;

  std::vector<Output> outputs_;
  size_t nodes_ = 0;
};

// Runs `executable` under the thread state of inner operations (StepThreadState), and raises for
// what it returns wrong: the window is poisoned then. What it raises is passed on.
std::shared_ptr<Executable> checked_executable(std::shared_ptr<Executable> executable,
                                               ExpectedOutputs expected, std::string backend);

}  // namespace torch_lazy
