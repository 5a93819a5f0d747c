// Sets of nodes that become one kernel.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "passes/core_graph.h"

namespace torch_lazy {

constexpr size_t kMostGroupNodes = 96;
constexpr size_t kMostGroupInputs = 40;  // values that a group reads from memory

// Every value that a node of the group makes has, size-1 dimensions apart, either the sizes of the
// domain (it varies along all of it) or those of the domain's parallel dimensions (it is, or goes
// with, the result of a reduction).
struct FusionGroup {
  std::vector<NodeId> nodes;  // in the graph's order; views and numbers are no members
  // Nodes computed here at whatever index they are read, in the graph's order. They are members of
  // no group, or of another one, which makes them for itself or stores them for others.
  std::vector<NodeId> inlined;
  Extents domain;               // sizes, without dimensions of size 1
  std::vector<bool> reduced;    // by dimension of the domain; all false where nothing is reduced
  std::vector<ValueId> stored;  // what other groups read and do not rematerialize
};

// A kernel, or a node that runs by itself (a library call, cat, scatter, mutation of an input).
using FusedItem = std::variant<FusionGroup, NodeId>;

// What a node asks of the group it joins.
struct Space {
  Extents sizes;              // that it runs over: of a reduction, its input's
  std::vector<bool> reduced;  // of a reduction
  bool reduces = false;
};

Space space_of(const CoreGraph& graph, const CoreNode& node);

// Sets `stored` to all that anybody but the group's nodes reads.
void choose_stored(const CoreGraph& graph, FusionGroup& group);

// Has indices, which are checked even where what is gathered has no reader.
bool can_fail(const CoreGraph& graph, const FusionGroup& group);

// Cuts a group that cannot be one kernel in two, before `node`. What the group did
// not store although others read it, its parts do not store for them either.
std::vector<FusionGroup> split_before(const CoreGraph& graph, const FusionGroup& group,
                                      NodeId node);

// "{add_3, mul_4 | store mul_4 | rematerialize exp_2} [128, 64~]", one line an item: members, what
// is stored, inlined nodes; a tilde marks a reduction dimension.
std::string to_string(const CoreGraph& graph, const std::vector<FusedItem>& items);

}  // namespace torch_lazy
