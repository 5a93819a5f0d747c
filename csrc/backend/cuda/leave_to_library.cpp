#include "backend/cuda/leave_to_library.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>

#include "codegen/divide.h"
#include "codegen/loop_ir.h"
#include "passes/graph_builder.h"

namespace torch_lazy::cuda {
namespace {

using codegen::ThreadLoop;

// Of the threads that go down columns together, 32 to a row (codegen/thread_loop).
constexpr int64_t kThreadsOfColumns = 256;
// A thread that has fewer is done before others would have begun.
constexpr int64_t kManySteps = 64;
// A device on which fewer than this part of the multiprocessors have a block is idle.
constexpr int64_t kIdle = 4;

bool is_long(const torch::jit::Node& node, int multiprocessors) {
  if (!has_complete_type(node.input(0)) || !has_complete_type(node.output())) return false;
  const TensorInfo input = info_of(node.input(0));
  const int64_t results = info_of(node.output()).elements();
  if (results == 0) return false;
  const int64_t steps = input.elements() / results;
  const auto dim = constant_value(node.input(1));
  const bool has_dim = dim && dim->isInt() && input.dims() > 0;
  const int64_t at = has_dim ? (dim->toInt() + input.dims()) % input.dims() : 0;
  if (!has_dim || input.strides[size_t(at)] == 1)
    return results * kIdle < multiprocessors && steps / ThreadLoop::kMostThreads >= kManySteps;
  const int64_t columns = std::min<int64_t>(results, ThreadLoop::kColumns);
  return codegen::divided_up(results, ThreadLoop::kColumns) * kIdle < multiprocessors &&
         steps * columns / kThreadsOfColumns >= kManySteps;
}

}  // namespace

std::shared_ptr<torch::jit::Graph> leave_long_arg_reductions(
    std::shared_ptr<torch::jit::Graph> graph, int multiprocessors) {
  for (torch::jit::Node* const node : graph->nodes())
    if ((node->kind() == c10::aten::argmax || node->kind() == c10::aten::argmin) &&
        is_long(*node, multiprocessors))
      node->i_(kLibraryAttribute, 1);
  return graph;
}

}  // namespace torch_lazy::cuda
