// What a compiled window does when it runs: steps over slots.
//
// A slot is a tensor of the run. A plan comes from one of two places. make_plan() makes kernels,
// library calls and copies of a core graph; there slot i < values is value i of the core graph, the
// rest are views that only the plan needs, and values that kernels alone touch have no tensor but a
// range of the arena, one block a run. library_plan() calls every operator of a recorded graph as
// it stands.
//
// Order of writes: input storages are written by kernels only after the last step that can fail on
// data, and by copies at the end; a run that fails before `first_write` has changed nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "backend/operator_table.h"
#include "base/api.h"
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
  Layout layout;  // its offset counts from the first element of the base
};

struct CopyStep {
  uint32_t source, target;
  bool from_host = false;  // of memory that is not the device's
};

// Fails unless all indices are in [0, limit). Nothing is written before, so that the window is run
// again by its operations, and the operator itself says what is wrong.
struct CheckStep {
  uint32_t indices;
  int64_t limit;
  std::string name;  // of the operator
};

// What an operator is expected to return.
struct ExpectedValue {
  uint32_t slot;
  bool defined;
  c10::ScalarType dtype;
  Extents sizes, strides;  // any strides where there are none
  std::string recorded;    // for the error: "%neg_0, which was Float(2, 3, ...) when ..."
};

struct LibraryStep {
  // Other steps address the result by these; the call may choose others.
  struct Output {
    uint32_t slot;
    Extents sizes, strides;
  };
  Step step;
  std::vector<Output> outputs = {};          // to be laid out again where they are not as said
  std::vector<ExpectedValue> expected = {};  // to be verified; see CompileOptions::verify
};

// Where a kernel's pointer comes from.
struct BufferLocation {
  bool arena = false;
  uint32_t slot = 0;  // unless in the arena
  int64_t bytes = 0;  // from the start of the arena
  // Unless none: nothing of the above, but a word of the launch, see codegen::BufferBinding.
  codegen::BufferBinding::Word word = codegen::BufferBinding::Word::kNone;
  int64_t origin = 0;    // of a ticket
  bool written = false;  // by the kernel

  bool has_slot() const { return !arena && word == codegen::BufferBinding::Word::kNone; }
};

struct KernelStep {
  codegen::LoweredKernel lowered;
  std::vector<BufferLocation> pointers;  // one per buffer
  uint32_t index = 0;                    // among the plan's kernels
  std::string name = {};                 // the loops' own, which are dropped once they are compiled
  int64_t bytes = 0;                     // that it moves; see plan/kernel_bytes.h
};

// A command of the device's own, for one operator or a part of the graph; see
// backend/operator_table.h and backend/graph_compiler.h.
struct OperatorStep {
  std::string name;  // of the operator, or "graph of 3 operators"
  DeviceCommand command;
  std::vector<uint32_t> slots;  // whose addresses it is given: what it reads, then its results
  size_t results = 0;           // how many of them are results
};

struct PlanStep {
  std::variant<AllocateStep, ConstantStep, ViewStep, CopyStep, CheckStep, LibraryStep, KernelStep,
               OperatorStep>
      action;
  int64_t origin = 0;              // operation of the recorded graph, for errors
  std::vector<uint32_t> released;  // slots that no later step reads
  // All operations that the step does or has a part in; none where it is `origin` alone.
  std::vector<int64_t> operations = {};
};

struct Plan {
  std::vector<PlanStep> steps;
  std::vector<uint32_t> inputs, outputs;  // slots
  uint32_t slots = 0;
  int64_t arena_bytes = 0;
  // The first step that writes an input's storage; 0 where that is not known.
  size_t first_write = 0;
  // The steps are the recorded operations in their order: a run that fails has done exactly those
  // before the one that failed, and what they made is valid.
  bool as_recorded = false;
  // For reports.
  size_t kernels = 0, commands = 0, library_calls = 0, copies = 0;
};

// The slots that the step reads or makes, each at least once.
std::vector<uint32_t> slots_of(const PlanStep& step);

// Fills `released` of every step; inputs and outputs live to the end.
void release_slots(Plan& plan);

// The first step that writes memory of an input; the number of steps where there is none. Library
// calls do not, in plans that make_plan() makes.
size_t first_write(const Plan& plan);

// One line a step, for tests and dumps.
TORCH_LAZY_API std::string to_string(const Plan& plan);

}  // namespace torch_lazy
