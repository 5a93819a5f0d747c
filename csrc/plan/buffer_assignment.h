// Which values are made right where they end up: in an input's storage, in a part of a cat.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "codegen/lower.h"
#include "passes/fuse.h"

namespace torch_lazy {

struct BufferAssignment {
  std::vector<ValueId> roots;  // by value: whose memory it lies in; itself for most
  std::vector<Layout>
      layouts;  // by value: where in the root's memory, from the root's first element
  std::unordered_set<NodeId> written_in_place;  // mutations of inputs that need no copy
  // By cat of which kernels write pieces where they belong: which of its inputs those are.
  std::unordered_map<NodeId, std::unordered_set<size_t>> joined;

  ValueId root(ValueId id) const { return roots[size_t(id)]; }
};

// A value made by a kernel, or by a chain of partial writes, takes the place of its mutation
// epilogue where
//  - nothing reads the old content of that storage afterwards, and in the kernel itself only the
//    element that is written (which undo_conflicts sees to, once loops are known),
//  - nothing that runs later can fail on data,
//  - no reader needs the value with another layout.
BufferAssignment assign_buffers(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                                const std::vector<FusedItem>& items);

// Undoes what conflicts with the loads of a group's kernels, and adds it to `undone`.
void undo_conflicts(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                    const std::vector<codegen::LoweredKernel>& kernels,
                    BufferAssignment& assignment, std::vector<ValueId>& undone);

}  // namespace torch_lazy
