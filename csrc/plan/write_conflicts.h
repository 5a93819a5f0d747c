// Assignments that a kernel's own loads do not bear.
#pragma once

#include <vector>

#include "codegen/lower.h"
#include "plan/buffer_assignment.h"

namespace torch_lazy {

// Undoes what conflicts with the loads of a group's kernels, and adds it to `undone`.
void undo_conflicts(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                    const std::vector<codegen::LoweredKernel>& kernels,
                    BufferAssignment& assignment, std::vector<ValueId>& undone);

}  // namespace torch_lazy
