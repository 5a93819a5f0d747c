// What a compiled window does when it runs: kernels, library calls and copies over slots.
//
// A slot is a tensor of the run: slot i < values is value i of the core graph, the rest are views
// that only the plan needs. Values that kernels alone touch have no tensor but a place in the
// arena, one block a run.
//
// Order of writes: input storages are written by kernels only after the last step that can fail on
// data, and by copies at the end; a run that fails before has changed nothing.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "codegen/lower.h"
#include "passes/core_graph.h"
#include "plan/step.h"

namespace torch_lazy {

// Makes an empty tensor.
struct AllocateStep {
  uint32_t slot;
  c10::ScalarType dtype;
  Extents sizes, strides;
};

// A copy of a constant.
struct ConstantStep {
  uint32_t slot;
  at::Tensor value;
};

// A tensor over the memory of another.
struct ViewStep {
  uint32_t base, slot;
  // From the start of the base's storage where the base is a graph input, of its memory otherwise:
  // the same, as all others start at 0.
  Layout layout;
};

struct CopyStep {
  uint32_t source, target;
};

// Raises as the operator would unless all indices are in [0, limit).
struct CheckStep {
  uint32_t indices;
  int64_t limit;
  Step raise;  // the operator itself
};

struct LibraryStep {
  struct Output {
    uint32_t slot;
    Extents sizes, strides;  // as the value's type says; the call may choose others
  };
  Step step;
  std::vector<Output> outputs;
};

// Where a kernel's pointer comes from.
struct MemoryPlace {
  bool arena = false;
  uint32_t slot = 0;  // unless in the arena
  int64_t bytes = 0;  // from the start of the arena
};

struct KernelStep {
  codegen::LoweredKernel lowered;
  std::vector<MemoryPlace> pointers;  // one per buffer
};

struct PlanStep {
  std::variant<AllocateStep, ConstantStep, ViewStep, CopyStep, CheckStep, LibraryStep, KernelStep>
      action;
  int64_t origin = 0;              // operation of the recorded graph, for errors
  std::vector<uint32_t> released;  // slots that no later step reads
};

struct Plan {
  std::vector<PlanStep> steps;
  std::vector<uint32_t> inputs, outputs;  // slots
  uint32_t slots = 0;
  int64_t arena_bytes = 0;
  // The first step that writes an input's storage.
  size_t first_write = 0;
  // For reports.
  size_t kernels = 0, library_calls = 0, copies = 0;
};

struct PlanOptions {
  int lanes = 16;
  int threads = 1;
  int64_t rematerialize_bytes = INT64_MAX;  // see passes/rematerialize.h; nothing unless asked
};

// `inputs` describes the graph's inputs.
Plan make_plan(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
               const PlanOptions& options);

// One line a step, for tests and dumps.
std::string to_string(const Plan& plan);

}  // namespace torch_lazy
