// A plan while it is made: the slots of values, the memory that they lie in, and copies between
// them. What runs is make_plan()'s.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/buffer_assignment.h"
#include "plan/graph_parts.h"
#include "plan/make_plan.h"

namespace torch_lazy {

class PlanBuilder {
 public:
  // All but `options` must outlive the builder. Values for which `needs_tensor` is false are
  // touched by kernels only.
  PlanBuilder(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
              const PlanOptions& options, const BufferAssignment& assignment);

  Plan& plan() { return plan_; }
  void add(decltype(PlanStep::action) action, int64_t origin);

  // ---- Memory ----

  // The value is read or written by more than kernels: what it lies in is a tensor.
  void needs_tensor(ValueId id);
  bool has_tensor(ValueId root) const { return needs_tensor_[size_t(root)]; }
  // The value can be read from its slot.
  bool is_ready(ValueId id) const { return ready_[size_t(id)]; }
  void set_ready(ValueId id) { ready_[size_t(id)] = true; }
  // Makes the memory that the value lies in, unless it is there or needs no tensor.
  void allocate(ValueId id, int64_t origin);
  // Of a value, in elements from the start of the storage it lies in.
  int64_t first_element(ValueId id) const;

  // ---- Slots ----

  // The slot of the value as a tensor of its own sizes and strides.
  uint32_t tensor_slot(ValueId id);
  // A tensor of its own with the value, on the plan's device.
  uint32_t copy_of(ValueId id, int64_t origin);
  // A view of what the slot holds.
  uint32_t region_slot(uint32_t base, Layout layout, int64_t origin);
  // The slot of what a command reads, on the plan's device.
  uint32_t command_argument(ValueId id, int64_t origin);

  // By the backend's own command, where it has one.
  void add_copy(uint32_t source, uint32_t target, int64_t origin);

  TensorDescription describe(ValueId id) const { return torch_lazy::describe(value(id)); }
  bool is_on_cpu(ValueId id) const { return torch_lazy::is_on_cpu(value(id), options_.device); }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }
  // `layout`: its offset counts from the start of the storage that the base lies in.
  void add_view(uint32_t base, uint32_t slot, Layout layout, int64_t origin);
  // What the slot holds: a value, or what region_slot() and copy_of() made.
  TensorDescription describe_slot(uint32_t slot) const;

  const CoreGraph& graph_;
  const PlanOptions options_;
  const BufferAssignment& assignment_;
  std::vector<int64_t> offsets_;  // of the graph's inputs in their storages, in elements
  std::vector<bool> needs_tensor_, ready_;
  std::unordered_map<uint32_t, TensorDescription> described_;  // slots that are no values
  Plan plan_;
};

}  // namespace torch_lazy
