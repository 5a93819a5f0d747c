#include "plan/plan_builder.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <optional>

#include "plan/operator_step.h"

namespace torch_lazy {

PlanBuilder::PlanBuilder(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                         const PlanOptions& options, const BufferAssignment& assignment)
    : graph_(graph),
      options_(options),
      assignment_(assignment),
      needs_tensor_(graph.values.size()),
      ready_(graph.values.size()) {
  for (const GraphInput& input : inputs) offsets_.push_back(input.offset);
  for (const ValueId id : graph.inputs) needs_tensor_[size_t(id)] = ready_[size_t(id)] = true;
  plan_.slots = uint32_t(graph.values.size());
}

void PlanBuilder::add(decltype(PlanStep::action) action, int64_t origin) {
  PlanStep step;
  step.action = std::move(action);
  step.origin = origin;
  plan_.steps.push_back(std::move(step));
}

void PlanBuilder::needs_tensor(ValueId id) {
  needs_tensor_[size_t(assignment_.root(graph_.base_of(id)))] = true;
}

void PlanBuilder::allocate(ValueId id, int64_t origin) {
  const ValueId root = assignment_.root(id);
  if (!needs_tensor_[size_t(root)] || ready_[size_t(root)]) return;
  const CoreValue& made = value(root);
  add(AllocateStep{uint32_t(root), made.dtype, made.sizes, made.strides}, origin);
  ready_[size_t(root)] = true;
}

int64_t PlanBuilder::first_element(ValueId id) const {
  if (const ValueId base = graph_.base_of(id); base != id) {
    const int64_t offset = node(value(id).producer).layout.offset;
    return value(base).producer == kNoId ? offset : first_element(base) + offset;
  }
  const CoreValue& root = value(assignment_.root(id));
  return assignment_.layouts[size_t(id)].offset +
         (root.producer == kNoId ? offsets_[size_t(root.input)] : 0);
}

uint32_t PlanBuilder::tensor_slot(ValueId id) {
  const CoreValue& wanted = value(id);
  if (ready_[size_t(id)]) return uint32_t(id);
  const CoreNode& maker = node(wanted.producer);
  ready_[size_t(id)] = true;
  if (maker.kind == CoreKind::kNumber) {
    add(ConstantStep{uint32_t(id), at::scalar_tensor(maker.number, wanted.dtype)}, maker.origin);
    return uint32_t(id);
  }
  if (maker.kind == CoreKind::kView) {
    Layout layout = maker.layout;
    layout.offset = first_element(id);
    add_view(tensor_slot(maker.inputs[0]), uint32_t(id), std::move(layout), maker.origin);
  } else {
    const ValueId root = assignment_.root(id);
    TORCH_INTERNAL_ASSERT(root != id, "%", wanted.value->debugName(), " is read before it is made");
    Layout layout = assignment_.layouts[size_t(id)];
    layout.offset = first_element(id);
    add_view(tensor_slot(root), uint32_t(id), std::move(layout), maker.origin);
  }
  return uint32_t(id);
}

void PlanBuilder::add_view(uint32_t base, uint32_t slot, Layout layout, int64_t origin) {
  if (base < graph_.values.size()) layout.offset -= first_element(ValueId(base));
  add(ViewStep{base, slot, std::move(layout)}, origin);
}

uint32_t PlanBuilder::copy_of(ValueId id, int64_t origin) {
  const CoreValue& source = value(id);
  const uint32_t copy = plan_.slots++;
  described_[copy] = describe(id);
  add(AllocateStep{copy, source.dtype, source.sizes, source.strides}, origin);
  add_copy(tensor_slot(id), copy, origin);
  return copy;
}

uint32_t PlanBuilder::region_slot(uint32_t base, Layout layout, int64_t origin) {
  const uint32_t slot = plan_.slots++;
  described_[slot] = {describe_slot(base).dtype,
                      {layout.sizes.begin(), layout.sizes.end()},
                      {layout.strides.begin(), layout.strides.end()}};
  add_view(base, slot, std::move(layout), origin);
  return slot;
}

uint32_t PlanBuilder::command_argument(ValueId id, int64_t origin) {
  return is_on_cpu(id) ? copy_of(id, origin) : tensor_slot(id);
}

void PlanBuilder::add_copy(uint32_t source, uint32_t target, int64_t origin) {
  const bool from_cpu = source < graph_.values.size() && is_on_cpu(ValueId(source));
  if (options_.operators && !from_cpu) {
    std::optional<OperatorStep> step = copy_step(*options_.operators, source, describe_slot(source),
                                                 target, describe_slot(target));
    if (step) {
      ++plan_.commands;
      return add(*std::move(step), origin);
    }
  }
  add(CopyStep{source, target, from_cpu}, origin);
  ++plan_.copies;
}

TensorDescription PlanBuilder::describe_slot(uint32_t slot) const {
  const auto made = described_.find(slot);
  return made != described_.end() ? made->second : describe(ValueId(slot));
}

}  // namespace torch_lazy
