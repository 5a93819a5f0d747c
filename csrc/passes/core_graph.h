// A graph of core operators read once into plain arrays: what fuse, lower and plan work on.
//
// The TorchScript graph stays the owner of what it holds; a CoreGraph keeps it alive.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/primitive.h"
#include "passes/layout.h"

namespace torch_lazy {

using ValueId = int32_t;
using NodeId = int32_t;
constexpr int32_t kNoId = -1;

using Extents = c10::SmallVector<int64_t, 5>;

enum class CoreKind : uint8_t {
  kNumber,     // a 0-dim constant of the computing dtype: `number`
  kPointwise,  // `op` on the inputs, broadcast
  kCopy,       // a cast or a new layout: _to_copy, clone
  kFill,       // full: every element is `number`
  kArange,     // start + step * index: `number`, `step`
  kView,       // as_strided: `layout`
  kScatter,    // as_strided_scatter(base, source): `layout`
  kReduction,  // `op` over `dims` of the input
  kScan,       // `op` along `dims[0]` of the input
  kGather,     // an input indexed by another along dimension `dims[0]`, see `gather`
  kCat,        // along `dims[0]`
  kFlip,       // the input read from its end along the dimensions `flipped`
  kJoin,       // inputs that lie at `begins`, later ones over earlier ones, each read from its end
               // along `flipped`; see choose_joins.h
  kMutation,   // copy_(target, value): target is a graph input or a view of one
  kLibrary,    // run through ATen
};

// out[..., i..., ...] of kGather: which of the output's dimensions index the index tensor.
enum class GatherKind : uint8_t {
  kRows,         // embedding: out[i..., j] = weight[index[i...], j]
  kIndexSelect,  // out[a.., i, b..] = source[a.., index[i], b..]
  kElements,     // gather: out[i...] = source[i... with dimension d replaced by index[i...]]
};

struct CoreNode {
  CoreKind kind = CoreKind::kLibrary;
  primitive::Op op = primitive::Op::kAdd;
  GatherKind gather = GatherKind::kRows;
  std::vector<ValueId> inputs;   // tensors that kernels read, in argument order
  std::vector<ValueId> outputs;  // tensors
  Layout layout;
  Extents dims, flipped;
  std::vector<Extents> begins;  // by input: the index of its first element in the output
  bool keepdim = false;
  c10::Scalar number, step;
  const torch::jit::Node* node = nullptr;  // null for numbers
  int64_t origin = 0;                      // index of the recorded node
  bool fails_on_data = false;
  // A part of the join that alone reads it, or a join that kernels see through views: computed by
  // each reader at the index it reads.
  bool computed_by_readers = false;
};

struct CoreValue {
  c10::ScalarType dtype = c10::ScalarType::Float;
  Extents sizes, strides;
  NodeId producer = kNoId;  // kNoId: a graph input
  int32_t input = kNoId;    // which
  std::vector<NodeId> users;
  const torch::jit::Value* value = nullptr;
  int64_t numel() const;
  bool undefined = false;
};

struct CoreGraph {
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<CoreNode> nodes;  // in order
  std::vector<CoreValue> values;
  std::vector<ValueId> inputs, outputs;

  // What a view is a view of; the value itself where it is none.
  ValueId base_of(ValueId id) const;
};

// Raises for a node that breaks the form (README.md), naming it.
CoreGraph read_core_graph(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace torch_lazy
