// Which values are made right where they end up: in an input's storage, in a part of a cat.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "passes/fuse.h"

namespace torch_lazy {

// Reads and writes of one memory are compared with each other. Where there are more than so many,
// none is made right there that would have to be compared.
inline constexpr size_t kMostWritesCompared = 512;

struct BufferAssignment {
  std::vector<ValueId> roots;  // by value: whose memory it lies in; itself for most
  std::vector<Layout>
      layouts;  // by value: where in the root's memory, from the root's first element
  std::unordered_set<NodeId> written_in_place;  // mutations of inputs that need no copy
  // Partial writes in place whose source is made there (plan/direct_writes.h).
  std::unordered_set<NodeId> written_early;
  // By cat of which kernels write pieces where they belong: which of its inputs those are.
  std::unordered_map<NodeId, std::unordered_set<size_t>> joined;

  ValueId root(ValueId id) const { return roots[size_t(id)]; }
};

// A value made by a kernel, or by a chain of partial writes, takes the place of its mutation
// epilogue where
//  - nothing reads the old content of what is written afterwards, and in the kernel itself only the
//    element that is written (which undo_conflicts sees to, once loops are known),
//  - nothing that runs later can fail on data,
//  - no reader needs the value with another layout.
BufferAssignment assign_buffers(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                                const std::vector<FusedItem>& items);

}  // namespace torch_lazy
