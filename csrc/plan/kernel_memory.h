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

// The first element of the value's root, from the start of that memory: an input's, of its storage;
// 0 of others.
int64_t first_element_of(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                         const BufferAssignment& assignment, ValueId id);

// Where in that memory a value, or a view of one, lies.
Layout region_of(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                 const BufferAssignment& assignment, ValueId id);

// Takes `exclusive` from the kernel's buffers that may share memory with one that is written.
void mark_overlaps(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                   const BufferAssignment& assignment, codegen::LoweredKernel& kernel);

}  // namespace torch_lazy
