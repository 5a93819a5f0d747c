// Which storage every tensor of a recorded graph lies in, and where.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "passes/layout.h"
#include "passes/operator_form.h"

namespace torch_lazy {

struct Place {
  uint32_t storage;
  uint32_t view;  // index into the storage's views
  bool operator==(const Place&) const = default;
};

struct StorageInfo {
  enum class Origin : uint8_t { kInput, kConstant, kNode };
  Origin origin;
  bool cpu = false;  // an input of the CPU, which windows only read
  bool written = false;
  // Also seen as another dtype, or conjugated or negated, from some node on: by then the one has
  // values of the other's making, so neither is written after that.
  bool reinterpreted = false;
  bool is_copy_of_view = false;  // made of such a view, with its elements alone
  c10::ScalarType dtype;
  int64_t bytes;
  // The values that made the storage known, and the views they are: graph inputs, or the one value
  // that a node returned.
  std::vector<std::pair<const torch::jit::Value*, uint32_t>> roots;
  std::vector<Layout> views;  // each layout once
};

struct AnalyzedNode {
  const OperatorForm* form = nullptr;  // null for constants and lists
  OperatorForm::Kind kind;             // never kUnknown
  // Of a view of another dtype, or with conj or neg bits: the operator that returns the same values
  // in memory of their own.
  std::optional<c10::OperatorHandle> copy = {};
};

// The outcome for a whole graph.
struct StorageAnalysis {
  std::vector<StorageInfo> storages;
  std::unordered_map<const torch::jit::Value*, Place> places;  // of all tensors but undefined ones
  std::vector<AnalyzedNode> nodes;                             // in graph order

  const Layout& layout(const Place& place) const {
    return storages[place.storage].views[place.view];
  }
};

// View operators are run on tensors that have the recorded metadata and no memory, so every one of
// them lies where eager put it. Raises, naming the operator, where that contradicts the recorded
// types, and where an operator has no functional form.
//
// A view of another dtype than its storage, or with conj or neg bits, is a storage of its own here,
// which the node makes as a copy. That is right as long as nobody writes either of them: raises for
// an operator that does.
StorageAnalysis analyze_storages(const torch::jit::Graph& graph,
                                 const std::vector<GraphInput>& inputs, OperatorForms& forms);

}  // namespace torch_lazy
