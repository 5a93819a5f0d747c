// What the storages of a window hold while its operations run, as values of a functional graph.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <utility>
#include <vector>

#include "passes/graph_builder.h"
#include "passes/storage_analysis.h"

namespace torch_lazy {

// The type of a value that has this layout in memory of its own.
TensorInfo info_for(const Layout& layout, c10::ScalarType dtype, c10::Device device);

class StorageContents {
 public:
  using Value = torch::jit::Value;

  // Both must outlive this object. Nodes are added where the builder inserts.
  StorageContents(const StorageAnalysis& analysis, GraphBuilder& builder);

  // Says what a root is in the new graph: an input, a constant, a node's result.
  void define(const Value* root, Value* value);

  // What is at a place now. Nothing is added where a value is that already.
  Value* read(const Place& place);

  // The type a value should be made with to be written there: then it is not copied.
  TensorInfo type_to_write(const Place& place) const;
  // Puts the elements of a value, which has the place's sizes and dtype, there. `origin` is the
  // index of the recorded node that does so.
  void write(const Place& place, Value* value, size_t origin);

  // Makes the roots of nodes outputs, and adds the nodes that write inputs.
  void finish(const std::vector<Place>& roots);

 private:
  struct Region {
    Layout layout;
    // Holds the region's elements in `base_layout`: an input, a constant, or what a node made and
    // no view; null until then.
    Value* base = nullptr;
    Layout base_layout;
    bool absolute = false;  // offsets into `base` count from the storage's start: it is an input
    uint32_t version = 0;   // counts writes
    size_t last_write = 0;  // origin
    std::vector<std::pair<uint32_t, Value*>> inputs;  // views of it and the inputs that they are
  };
  struct Read {
    Value* value = nullptr;
    uint32_t version = 0;  // of the region
  };
  struct Contents {
    std::vector<Region> regions;
    std::vector<uint32_t> region_of_view;
    std::vector<Read> reads;  // by view
    c10::Device device = c10::kCPU;
  };

  Region& region_of(const Place& place);
  Value* strided(const Place& place, const Region& region, const Layout& layout);
  Value* writable(Value* value, const TensorInfo& type);
  Value* destination(uint32_t storage, const Region& region);
  static Value* for_end(Value* value, const Value* taken);

  const StorageAnalysis& analysis_;
  GraphBuilder& builder_;
  std::vector<Contents> contents_;                             // by storage
  std::vector<std::pair<uint32_t, uint32_t>> written_inputs_;  // storage, region: by first write
};

}  // namespace torch_lazy
