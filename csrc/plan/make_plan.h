// From a core graph to a plan of kernels, library calls and copies.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/graph_compiler.h"
#include "base/api.h"
#include "codegen/prelude.h"
#include "passes/core_graph.h"
#include "plan/plan.h"

namespace torch_lazy {

struct PlanOptions {
  int lanes = 16;
  int threads = 1;
  int64_t rematerialize_bytes = INT64_MAX;  // see passes/rematerialize.h; nothing unless asked
  bool verify = false;                      // check what library calls return; see LibraryStep
  c10::Device device = c10::kCPU;           // of the tensors that library calls take
  // Commands of the device in place of kernels: nothing is fused then. Null for kernels.
  const OperatorTable* operators = nullptr;
  // What takes parts of the graph whole, before `operators`, which is not null then.
  const GraphCompiler* graphs = nullptr;
  codegen::Target::Kind target = codegen::Target::Kind::kCpu;  // that kernels are printed for
  int64_t shared_bytes = 48 << 10;                             // of a GPU's block, at most
  // Of arguments that a launch takes: kernels that are alike are launched together as far as it
  // goes. 0: each by itself, which is as well where a launch is a call.
  size_t argument_bytes = 0;
};

// `inputs` describes the graph's inputs.
TORCH_LAZY_API Plan make_plan(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                              const PlanOptions& options);

}  // namespace torch_lazy
