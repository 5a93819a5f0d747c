// Which memory a plan's kernels touch.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/lower.h"
#include "plan/buffer_assignment.h"

namespace torch_lazy {

// A number for the memory that a value lies in; inputs over one storage share theirs.
int64_t memory_of(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                  const BufferAssignment& assignment, ValueId id);

// Takes `exclusive` from the kernel's buffers that may share memory with one that is written.
void mark_overlaps(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                   const BufferAssignment& assignment, codegen::LoweredKernel& kernel);

}  // namespace torch_lazy
