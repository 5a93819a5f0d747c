#include "plan/make_plan.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/metrics.h"
#include "base/pass_times.h"
#include "offload/runtime_device.h"
#include "plan/arena.h"
#include "plan/kernel_bytes.h"
#include "plan/library_plan.h"
#include "plan/lower_items.h"
#include "plan/operator_step.h"
#include "plan/step_from_node.h"

namespace torch_lazy {
namespace {

using codegen::BufferBinding;
using codegen::LoweredKernel;

class Planner {
 public:
  Planner(const CoreGraph& graph, const std::vector<GraphInput>& inputs, const PlanOptions& options)
      : graph_(graph), inputs_(inputs), options_(options) {
    for (const GraphInput& input : inputs) offsets_.push_back(input.offset);
    for (size_t id = 0; id < graph.values.size(); ++id)
      ids_.emplace(graph.values[id].value, ValueId(id));
  }

  Plan make() {
    LoweredItems lowered_items = lower_items(graph_, inputs_, options_);
    items_ = std::move(lowered_items.items);
    buffer_assignment_ = std::move(lowered_items.buffer_assignment);
    const PassTimer timer("plan");
    plan_.slots = uint32_t(graph_.values.size());
    choose_memory();
    for (const LoweredItem& lowered : items_) emit(lowered);
    for (const LoweredItem& lowered : items_)
      if (const auto* id = std::get_if<NodeId>(&lowered.item)) keep_source(*id);
    for (const LoweredItem& lowered : items_)
      if (const auto* id = std::get_if<NodeId>(&lowered.item)) emit_mutation(*id);
    for (const ValueId id : graph_.outputs) tensor_slot(id);
    for (const ValueId id : graph_.inputs) plan_.inputs.push_back(uint32_t(id));
    for (const ValueId id : graph_.outputs) plan_.outputs.push_back(uint32_t(id));
    finish();
    return std::move(plan_);
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  // ---- Slots ----

  Step library_step(NodeId id) {
    const torch::jit::Node& call = *node(id).node;
    Step step = step_from_node(call, options_.device, [&](const torch::jit::Value* read) {
      return tensor_slot(ids_.at(read));
    });
    for (const torch::jit::Value* made : values_made_by(call))
      step.outputs.push_back(ids_.at(made));
    make_on_device(step);
    return step;
  }

  // An operator that reads no tensor has to be told where its result goes.
  void make_on_device(Step& step) const {
    const std::vector<c10::Argument>& formals = step.op->handle.schema().arguments();
    const auto is_constant = [](const Operand& operand) {
      return operand.kind == Operand::Kind::kConstant;
    };
    if (!std::all_of(step.operands.begin(), step.operands.end(), is_constant)) return;
    for (size_t i = 0; i < step.operands.size(); ++i)
      if (formals[i].name() == "device") step.operands[i].constant = options_.device;
  }

  uint32_t new_slot() { return plan_.slots++; }

  void add(decltype(PlanStep::action) action, int64_t origin) {
    PlanStep step;
    step.action = std::move(action);
    step.origin = origin;
    plan_.steps.push_back(std::move(step));
  }

  // ---- Memory ----

  // Values that are read or written by more than kernels need tensors.
  void choose_memory() {
    needs_tensor_.assign(graph_.values.size(), false);
    for (const ValueId id : graph_.inputs) needs_tensor_[size_t(id)] = true;
    for (const ValueId id : graph_.outputs) mark(id);
    for (const LoweredItem& lowered : items_) {
      if (const auto* group = std::get_if<FusionGroup>(&lowered.item)) {
        for (const NodeId id : group->nodes)
          if (node(id).kind == CoreKind::kGather)
            for (const ValueId input : node(id).inputs) mark(input);
        continue;
      }
      const CoreNode& single = node(std::get<NodeId>(lowered.item));
      for (const ValueId id : single.inputs) mark(id);
      for (const ValueId id : single.outputs) mark(id);
    }
    ready_.assign(graph_.values.size(), false);
    for (const ValueId id : graph_.inputs) ready_[size_t(id)] = true;
  }

  void mark(ValueId id) {
    const ValueId base = graph_.base_of(id);
    needs_tensor_[size_t(buffer_assignment_.root(base))] = true;
  }

  void allocate(ValueId id, int64_t origin) {
    const ValueId root = buffer_assignment_.root(id);
    if (!needs_tensor_[size_t(root)] || ready_[size_t(root)]) return;
    const CoreValue& made = value(root);
    add(AllocateStep{uint32_t(root), made.dtype, made.sizes, made.strides}, origin);
    ready_[size_t(root)] = true;
  }

  // The slot of the value as a tensor of its own sizes and strides.
  uint32_t tensor_slot(ValueId id) {
    const CoreValue& wanted = value(id);
    if (ready_[size_t(id)]) return uint32_t(id);
    const NodeId producer = wanted.producer;
    const CoreNode& maker = node(producer);
    if (maker.kind == CoreKind::kNumber) {
      const at::Tensor constant = at::scalar_tensor(maker.number, wanted.dtype);
      add(ConstantStep{uint32_t(id), constant}, maker.origin);
      ready_[size_t(id)] = true;
      return uint32_t(id);
    }
    ViewStep view{0, uint32_t(id), {}};
    if (maker.kind == CoreKind::kView) {
      view.base = tensor_slot(maker.inputs[0]);
      view.layout = maker.layout;
    } else {
      const ValueId root = buffer_assignment_.root(id);
      TORCH_INTERNAL_ASSERT(root != id, "%", wanted.value->debugName(),
                            " is read before it is made");
      view.base = tensor_slot(root);
      view.layout = buffer_assignment_.layouts[size_t(id)];
      view.layout.offset = first_element(id);
    }
    add(std::move(view), maker.origin);
    ready_[size_t(id)] = true;
    return uint32_t(id);
  }

  // ---- Steps ----

  void emit(const LoweredItem& lowered) {
    if (const auto* id = std::get_if<NodeId>(&lowered.item))
      emit_node(*id);
    else
      emit_group(std::get<FusionGroup>(lowered.item), lowered.kernels);
  }

  void emit_group(const FusionGroup& group, const std::vector<LoweredKernel>& kernels) {
    const size_t first_step = plan_.steps.size();
    const std::vector<int64_t> operations = operations_of(group);
    const int64_t origin = operations.front();
    for (const NodeId id : group.nodes)
      if (node(id).kind == CoreKind::kGather) emit_check(id);
    for (const ValueId id : group.stored) allocate(id, origin);
    for (const LoweredKernel& kernel : kernels) {
      KernelStep step{
          kernel, {}, uint32_t(plan_.kernels++), kernel.kernel.name, bytes_moved(kernel)};
      for (size_t i = 0; i < kernel.buffers.size(); ++i)
        step.pointers.push_back(memory_of(kernel, i));
      mark_overlaps(step.lowered);
      add(std::move(step), origin);
    }
    for (const ValueId id : group.stored)
      if (buffer_assignment_.root(id) == id) ready_[size_t(id)] = true;
    partials_.clear();
    for (size_t i = first_step; i < plan_.steps.size(); ++i) plan_.steps[i].operations = operations;
  }

  // Ascending, each once. Inlined nodes are another group's work that is done again here.
  std::vector<int64_t> operations_of(const FusionGroup& group) const {
    std::vector<int64_t> operations;
    for (const NodeId id : group.nodes) operations.push_back(node(id).origin);
    std::sort(operations.begin(), operations.end());
    operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
    return operations;
  }

  // Buffers that may share memory with one that is written.
  void mark_overlaps(LoweredKernel& kernel) const {
    const auto memory = [&](const BufferBinding& binding) -> int64_t {
      if (binding.value < 0) return binding.value;
      const ValueId root = buffer_assignment_.root(binding.value);
      const int32_t input = value(root).input;
      return input == kNoId ? root : -(int64_t(1) << 32) - inputs_[size_t(input)].storage;
    };
    std::map<int64_t, std::pair<size_t, bool>> uses;  // how many, and whether one is written
    for (const BufferBinding& binding : kernel.buffers) {
      auto& [count, written] = uses[memory(binding)];
      ++count;
      written |= binding.written;
    }
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const auto& [count, written] = uses[memory(kernel.buffers[i])];
      if (count > 1 && written) kernel.kernel.buffers[i].exclusive = false;
    }
  }

  BufferLocation memory_of(const LoweredKernel& kernel, size_t buffer) {
    const BufferBinding& binding = kernel.buffers[buffer];
    const int64_t element = codegen::bytes_of(kernel.kernel.buffers[buffer].type);
    if (binding.value <= BufferBinding::kPartial) {
      const auto [found, made] = partials_.emplace(binding.value, BufferLocation{});
      if (made) {
        const size_t index = arena_.add(kernel.partial_elements * element, plan_.steps.size());
        found->second = BufferLocation{true, uint32_t(index), 0};
      }
      arena_.use(found->second.slot, plan_.steps.size());
      return found->second;
    }
    const ValueId root = buffer_assignment_.root(binding.value);
    if (needs_tensor_[size_t(root)]) {
      TORCH_INTERNAL_ASSERT(ready_[size_t(root)], "a kernel touches a tensor before it is made");
      return {false, uint32_t(root), 0};
    }
    const auto [found, made] = arena_index_.emplace(root, 0);
    if (made) {
      const CoreValue& owner = value(root);
      const int64_t elements = Layout{owner.sizes, owner.strides, 0}.end();
      found->second = arena_.add(elements * element, plan_.steps.size());
    }
    arena_.use(found->second, plan_.steps.size());
    return {true, uint32_t(found->second), 0};
  }

  void emit_check(NodeId id) {
    const CoreNode& gather = node(id);
    const ValueId source = gather.inputs[0];
    CheckStep check{tensor_slot(gather.inputs[1]), value(source).sizes[size_t(gather.dims[0])],
                    library_step(id)};
    check.raise.outputs.assign(check.raise.outputs.size(), -1);
    add(std::move(check), gather.origin);
  }

  void emit_node(NodeId id) {
    const CoreNode& single = node(id);
    switch (single.kind) {
      case CoreKind::kMutation:
        return;  // at the end
      case CoreKind::kScatter:
        emit_scatter(id);
        return;
      case CoreKind::kCat:
        if (buffer_assignment_.joined.count(id)) {
          emit_cat(id);
          return;
        }
        [[fallthrough]];
      default:
        emit_library(id);
    }
  }

  void emit_library(NodeId id) {
    Step call = library_step(id);
    if (options_.operators && emit_operator(id, call)) return;
    LibraryStep step{std::move(call), {}};
    for (const ValueId output : node(id).outputs) {
      if (!value(output).undefined)
        step.outputs.push_back({uint32_t(output), value(output).sizes, value(output).strides});
      ready_[size_t(output)] = true;
    }
    if (options_.verify) step.expected = expected_values(*node(id).node, step.step);
    for (ExpectedValue& value : step.expected) value.strides.clear();  // laid out again as needed
    add(std::move(step), node(id).origin);
    ++plan_.library_calls;
  }

  // The backend's own command for the call; false where it has none.
  bool emit_operator(NodeId id, const Step& call) {
    std::vector<TensorDescription> results;
    for (const ValueId output : node(id).outputs) {
      if (value(output).undefined || is_on_cpu(output)) return false;
      results.push_back(describe(output));
    }
    const auto read = [&](uint32_t slot) { return describe(ValueId(slot)); };
    std::optional<OperatorStep> step =
        operator_step(*options_.operators, call, read, std::move(results));
    if (!step) {
      increment(metrics().fallbacks[call.op->name + (is_offloaded() ? " on the CPU" : " by ATen")]);
      return false;
    }
    for (uint32_t& slot : step->slots)
      if (is_on_cpu(ValueId(slot))) slot = copy_of(ValueId(slot), node(id).origin);
    if (node(id).kind == CoreKind::kGather) emit_check(id);
    for (const ValueId output : node(id).outputs) {
      allocate(output, node(id).origin);
      step->slots.push_back(uint32_t(output));
      ++step->results;
    }
    add(*std::move(step), node(id).origin);
    ++plan_.commands;
    return true;
  }

  TensorDescription describe(ValueId id) const {
    const CoreValue& described = value(id);
    return {described.dtype,
            {described.sizes.begin(), described.sizes.end()},
            {described.strides.begin(), described.strides.end()}};
  }

  // What the slot holds: a value, or what region_slot() and copy_of() made.
  TensorDescription describe_slot(uint32_t slot) const {
    const auto made = described_.find(slot);
    return made != described_.end() ? made->second : describe(ValueId(slot));
  }

  // By the backend's own command, where it has one.
  void add_copy(uint32_t source, uint32_t target, int64_t origin) {
    if (options_.operators && !(source < graph_.values.size() && is_on_cpu(ValueId(source)))) {
      std::optional<OperatorStep> step = copy_step(
          *options_.operators, source, describe_slot(source), target, describe_slot(target));
      if (step) {
        ++plan_.commands;
        return add(*std::move(step), origin);
      }
    }
    add(CopyStep{source, target}, origin);
    ++plan_.copies;
  }

  // A tensor of the CPU where the others are on another device: a number that the program changes.
  bool is_on_cpu(ValueId id) const {
    const auto type = value(id).value->type()->cast<c10::TensorType>();
    return !options_.device.is_cpu() && type && type->device() && type->device()->is_cpu();
  }

  // A tensor of its own with the value, on the plan's device.
  uint32_t copy_of(ValueId id, int64_t origin) {
    const CoreValue& source = value(id);
    const uint32_t copy = new_slot();
    described_[copy] = describe(id);
    add(AllocateStep{copy, source.dtype, source.sizes, source.strides}, origin);
    add_copy(tensor_slot(id), copy, origin);
    return copy;
  }

  uint32_t region_slot(uint32_t base, Layout layout, int64_t origin) {
    const uint32_t slot = new_slot();
    described_[slot] = {describe_slot(base).dtype,
                        {layout.sizes.begin(), layout.sizes.end()},
                        {layout.strides.begin(), layout.strides.end()}};
    add(ViewStep{base, slot, std::move(layout)}, origin);
    return slot;
  }

  // The pieces that no kernel wrote in place are copied there.
  void emit_cat(NodeId id) {
    const CoreNode& cat = node(id);
    const ValueId whole = cat.outputs[0];
    allocate(whole, cat.origin);
    const size_t dim = size_t(cat.dims[0]);
    Layout layout{value(whole).sizes, value(whole).strides, 0};
    int64_t begin = 0;
    const std::unordered_set<size_t>& joined = buffer_assignment_.joined.at(id);
    for (size_t i = 0; i < cat.inputs.size(); ++i) {
      const ValueId piece = cat.inputs[i];
      layout.sizes = value(piece).sizes;
      layout.offset = begin * layout.strides[dim];
      begin += layout.sizes[dim];
      if (joined.count(i)) continue;
      const uint32_t source = tensor_slot(piece);
      add_copy(source, region_slot(uint32_t(whole), layout, cat.origin), cat.origin);
    }
    if (buffer_assignment_.root(whole) == whole) ready_[size_t(whole)] = true;
  }

  bool is_input(ValueId id) const { return value(id).producer == kNoId; }

  // Of a value, in elements from the start of the storage it lies in.
  int64_t first_element(ValueId id) const {
    const ValueId base = graph_.base_of(id);
    if (base != id) return node(value(id).producer).layout.offset;
    const ValueId root = buffer_assignment_.root(id);
    return buffer_assignment_.layouts[size_t(id)].offset +
           (is_input(root) ? offsets_[size_t(value(root).input)] : 0);
  }

  void emit_scatter(NodeId id) {
    const CoreNode& scatter = node(id);
    const ValueId made = scatter.outputs[0], base = scatter.inputs[0];
    if (buffer_assignment_.root(made) == made) {
      allocate(made, scatter.origin);
      add_copy(tensor_slot(base), uint32_t(made), scatter.origin);
      ready_[size_t(made)] = true;
    }
    // The offset counts from the start of an input's storage; of `made`, from its first element.
    Layout region = scatter.layout;
    region.offset +=
        first_element(made) - (is_input(graph_.base_of(base)) ? first_element(base) : 0);
    const uint32_t target = region_slot(tensor_slot(made), region, scatter.origin);
    add_copy(tensor_slot(scatter.inputs[1]), target, scatter.origin);
  }

  void emit_mutation(NodeId id) {
    const CoreNode& copy = node(id);
    if (copy.kind != CoreKind::kMutation) return;
    if (buffer_assignment_.written_in_place.count(id)) return;
    const auto kept = kept_sources_.find(id);
    const uint32_t source =
        kept != kept_sources_.end() ? kept->second : tensor_slot(copy.inputs[1]);
    add_copy(source, tensor_slot(copy.inputs[0]), copy.origin);
  }

  // A write-back that reads an input may come after another that writes it.
  void keep_source(NodeId id) {
    const CoreNode& copy = node(id);
    if (copy.kind != CoreKind::kMutation || value(graph_.base_of(copy.inputs[1])).producer != kNoId)
      return;
    kept_sources_[id] = copy_of(copy.inputs[1], copy.origin);
  }

  // ---- The end ----

  void finish() {
    arena_.assign();
    plan_.arena_bytes = arena_.bytes();
    plan_.first_write = first_write(plan_);
    release_slots(plan_);
    for (PlanStep& step : plan_.steps)
      if (auto* kernel = std::get_if<KernelStep>(&step.action))
        for (BufferLocation& pointer : kernel->pointers)
          if (pointer.arena) pointer.bytes = arena_.offset(pointer.slot);
  }

  const CoreGraph& graph_;
  const std::vector<GraphInput>& inputs_;
  const PlanOptions options_;
  std::vector<int64_t> offsets_;
  BufferAssignment buffer_assignment_;
  std::vector<LoweredItem> items_;
  std::unordered_map<const torch::jit::Value*, ValueId> ids_;
  std::vector<bool> needs_tensor_, ready_;
  Arena arena_;
  std::unordered_map<ValueId, size_t> arena_index_;
  std::map<ValueId, BufferLocation> partials_;
  std::unordered_map<uint32_t, TensorDescription> described_;  // slots that are no values
  std::unordered_map<NodeId, uint32_t> kept_sources_;          // by write-back: a copy of an input
  Plan plan_;
};

}  // namespace

Plan make_plan(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
               const PlanOptions& options) {
  return Planner(graph, inputs, options).make();
}

}  // namespace torch_lazy
