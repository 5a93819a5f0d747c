#include "plan/make_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/pass_times.h"
#include "ir/node_operator.h"
#include "passes/pure_nodes.h"
#include "plan/arena.h"
#include "plan/batch_items.h"
#include "plan/graph_parts.h"
#include "plan/kernel_bytes.h"
#include "plan/kernel_memory.h"
#include "plan/library_plan.h"
#include "plan/lower_items.h"
#include "plan/operator_step.h"
#include "plan/plan_builder.h"
#include "plan/step_from_node.h"

namespace torch_lazy {
namespace {

using codegen::BufferBinding;
using codegen::LoweredKernel;

class Planner {
 public:
  Planner(const CoreGraph& graph, const std::vector<GraphInput>& inputs, const PlanOptions& options)
      : graph_(graph),
        inputs_(inputs),
        options_(options),
        lowered_(lower_items(graph, inputs, options)),
        builder_(graph, inputs, options, lowered_.buffer_assignment) {
    for (size_t id = 0; id < graph.values.size(); ++id)
      ids_.emplace(graph.values[id].value, ValueId(id));
    for (const CompiledPart& part : lowered_.parts)
      for (const NodeId id : part.part.nodes) part_of_.emplace(id, &part);
  }

  Plan make() {
    const PassTimer timer("plan");
    choose_memory();
    for (const std::vector<size_t>& items :
         batch_items(graph_, inputs_, lowered_, options_.argument_bytes))
      emit(items);
    for (const LoweredItem& lowered : lowered_.items)
      if (const auto* id = std::get_if<NodeId>(&lowered.item)) keep_source(*id);
    for (const LoweredItem& lowered : lowered_.items)
      if (const auto* id = std::get_if<NodeId>(&lowered.item)) emit_mutation(*id);
    for (const ValueId id : graph_.outputs) builder_.tensor_slot(id);
    for (const ValueId id : graph_.inputs) plan().inputs.push_back(uint32_t(id));
    for (const ValueId id : graph_.outputs) plan().outputs.push_back(uint32_t(id));
    finish();
    return std::move(plan());
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }
  Plan& plan() { return builder_.plan(); }

  // ---- Calls ----

  Step library_step(NodeId id) {
    const torch::jit::Node& call = *node(id).node;
    Step step = step_from_node(call, options_.device, [&](const torch::jit::Value* read) {
      return builder_.tensor_slot(ids_.at(read));
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

  // Values that are read or written by more than kernels need tensors.
  void choose_memory() {
    for (const ValueId id : graph_.outputs) builder_.needs_tensor(id);
    for (const LoweredItem& lowered : lowered_.items) {
      if (const auto* group = std::get_if<FusionGroup>(&lowered.item)) {
        for (const NodeId id : group->nodes)
          if (node(id).kind == CoreKind::kGather)
            for (const ValueId input : node(id).inputs) builder_.needs_tensor(input);
        continue;
      }
      const CoreNode& single = node(std::get<NodeId>(lowered.item));
      for (const ValueId id : single.inputs) builder_.needs_tensor(id);
      for (const ValueId id : single.outputs) builder_.needs_tensor(id);
    }
  }

  // ---- Steps ----

  void emit(const std::vector<size_t>& items) {
    if (const auto* id = std::get_if<NodeId>(&lowered_.items[items.front()].item))
      emit_node(*id);
    else
      emit_groups(items);
  }

  // Several are launched together, as long as what they are told of memory leaves them alike.
  void emit_groups(const std::vector<size_t>& items) {
    const size_t first_step = plan().steps.size();
    std::vector<NodeId> nodes;
    for (const size_t item : items) {
      const FusionGroup& group = group_of(item);
      nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
    }
    const std::vector<int64_t> operations = operations_of(nodes);
    const int64_t origin = operations.front();
    for (const size_t item : items) {
      for (const NodeId id : group_of(item).nodes)
        if (node(id).kind == CoreKind::kGather && !is_checked_by(lowered_.items[item].kernels, id))
          emit_check(id);
      for (const ValueId id : group_of(item).stored) builder_.allocate(id, origin);
    }
    std::vector<KernelStep> together;
    for (const size_t item : items) {
      for (const LoweredKernel& kernel : lowered_.items[item].kernels) {
        KernelStep step = step_of(kernel, origin);
        if (items.size() > 1) {
          together.push_back(std::move(step));
          continue;
        }
        place(step);
        add_kernel(std::move(step), origin);
      }
    }
    for (KernelStep& step : together) place(step);
    for (KernelStep& step : batches_of(std::move(together))) add_kernel(std::move(step), origin);
    for (const size_t item : items)
      for (const ValueId id : group_of(item).stored)
        if (lowered_.buffer_assignment.root(id) == id) builder_.set_ready(id);
    partials_.clear();
    for (size_t i = first_step; i < plan().steps.size(); ++i)
      plan().steps[i].operations = operations;
  }

  const FusionGroup& group_of(size_t item) const {
    return std::get<FusionGroup>(lowered_.items[item].item);
  }

  // A step without all its memory, but behind the copies of what it reads of the host.
  KernelStep step_of(const LoweredKernel& kernel, int64_t origin) {
    KernelStep step{kernel, {}, 0, kernel.kernel.name, bytes_moved(kernel)};
    step.pointers.resize(kernel.buffers.size());
    for (size_t i = 0; i < kernel.buffers.size(); ++i)
      if (is_of_host(kernel.buffers[i])) step.pointers[i] = memory_of_host(step.lowered, i, origin);
    return step;
  }

  // The rest of its memory, of which the arena knows by that that it is the next step.
  void place(KernelStep& step) {
    for (size_t i = 0; i < step.lowered.buffers.size(); ++i) {
      const BufferBinding& binding = step.lowered.buffers[i];
      if (!is_of_host(binding)) step.pointers[i] = memory_of(step.lowered, i);
      step.pointers[i].written = binding.written;
    }
    mark_overlaps(graph_, inputs_, lowered_.buffer_assignment, step.lowered);
  }

  void add_kernel(KernelStep step, int64_t origin) {
    step.index = uint32_t(plan().kernels++);
    builder_.add(std::move(step), origin);
  }

  // Ascending, each once. Inlined nodes are another group's work that is done again here.
  std::vector<int64_t> operations_of(const std::vector<NodeId>& nodes) const {
    std::vector<int64_t> operations;
    for (const NodeId id : nodes) operations.push_back(node(id).origin);
    std::sort(operations.begin(), operations.end());
    operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
    return operations;
  }

  BufferLocation memory_of(const LoweredKernel& kernel, size_t buffer) {
    const BufferBinding& binding = kernel.buffers[buffer];
    if (binding.word != BufferBinding::Word::kNone)
      return {.word = binding.word, .origin = binding.origin};
    const int64_t element = codegen::bytes_of(kernel.kernel.buffers[buffer].type);
    if (binding.value <= BufferBinding::kPartial) {
      const auto [found, made] = partials_.emplace(binding.value, BufferLocation{});
      if (made) {
        const size_t index = arena_.add(kernel.partial_elements * element, plan().steps.size());
        found->second = BufferLocation{true, uint32_t(index), 0};
      }
      arena_.use(found->second.slot, plan().steps.size());
      return found->second;
    }
    const ValueId root = lowered_.buffer_assignment.root(binding.value);
    if (builder_.has_tensor(root)) {
      TORCH_INTERNAL_ASSERT(builder_.is_ready(root), "a kernel touches a tensor before it is made");
      return {false, uint32_t(root), 0};
    }
    const auto [found, made] = arena_index_.emplace(root, 0);
    if (made) {
      const CoreValue& owner = value(root);
      const int64_t elements = Layout{owner.sizes, owner.strides, 0}.end();
      found->second = arena_.add(elements * element, plan().steps.size());
    }
    arena_.use(found->second, plan().steps.size());
    return {true, uint32_t(found->second), 0};
  }

  // One that nothing reads is in no kernel.
  bool is_checked_by(const std::vector<LoweredKernel>& kernels, NodeId gather) const {
    const auto checks = [&](const BufferBinding& binding) {
      return binding.word == BufferBinding::Word::kTicket && binding.origin == node(gather).origin;
    };
    return std::any_of(kernels.begin(), kernels.end(), [&](const LoweredKernel& kernel) {
      return std::any_of(kernel.buffers.begin(), kernel.buffers.end(), checks);
    });
  }

  // What a kernel makes lies on the device, although numbers of the host alone may have gone in.
  bool is_of_host(const BufferBinding& binding) const {
    if (binding.value < 0 || !builder_.is_on_cpu(binding.value)) return false;
    const NodeId producer = value(binding.value).producer;
    return producer == kNoId || node(producer).kind == CoreKind::kLibrary;
  }

  // A device does not read the host's memory: a single element goes into the launch, others into a
  // copy on the device.
  BufferLocation memory_of_host(LoweredKernel& kernel, size_t buffer, int64_t origin) {
    const ValueId id = kernel.buffers[buffer].value;
    codegen::Buffer& made = kernel.kernel.buffers[buffer];
    made.immediate = value(id).sizes.empty();
    return {false, made.immediate ? builder_.tensor_slot(id) : builder_.copy_of(id, origin), 0};
  }

  void emit_check(NodeId id) {
    const CoreNode& gather = node(id);
    const ValueId source = gather.inputs[0];
    builder_.add(CheckStep{builder_.tensor_slot(gather.inputs[1]),
                           value(source).sizes[size_t(gather.dims[0])], operator_name(gather.node)},
                 gather.origin);
  }

  void emit_node(NodeId id) {
    if (const auto found = part_of_.find(id); found != part_of_.end()) {
      if (id == found->second->part.nodes.back()) emit_part(*found->second);
      return;
    }
    const CoreNode& single = node(id);
    switch (single.kind) {
      case CoreKind::kMutation:
        return;  // at the end
      case CoreKind::kScatter:
        emit_scatter(id);
        return;
      case CoreKind::kCat:
        if (lowered_.buffer_assignment.joined.count(id)) {
          emit_cat(id);
          return;
        }
        [[fallthrough]];
      default:
        emit_library(id);
    }
  }

  void emit_part(const CompiledPart& compiled) {
    const GraphPart& part = compiled.part;
    const int64_t origin = node(part.nodes.front()).origin;
    for (const NodeId id : part.nodes)
      if (node(id).kind == CoreKind::kGather) emit_check(id);
    OperatorStep step{name_of(part), compiled.command, {}, part.results.size()};
    for (const ValueId id : part.inputs)
      step.slots.push_back(builder_.command_argument(id, origin));
    for (const ValueId id : part.results) {
      builder_.allocate(id, origin);
      step.slots.push_back(uint32_t(id));
    }
    builder_.add(std::move(step), origin);
    plan().steps.back().operations = operations_of(part.nodes);
    ++plan().commands;
  }

  // It needs memory of its own and nothing to compute, unless it draws numbers or may raise.
  bool is_without_elements(NodeId id) const {
    const std::vector<ValueId>& outputs = node(id).outputs;
    return !outputs.empty() && is_pure(*node(id).node) &&
           std::ranges::all_of(outputs, [&](ValueId output) {
             return !value(output).undefined && value(output).numel() == 0 &&
                    !builder_.is_on_cpu(output);
           });
  }

  void emit_library(NodeId id) {
    if (is_without_elements(id)) {
      for (const ValueId output : node(id).outputs) builder_.allocate(output, node(id).origin);
      return;
    }
    Step call = library_step(id);
    if (options_.operators && emit_operator(id, call)) return;
    LibraryStep step{std::move(call), {}};
    for (const ValueId output : node(id).outputs) {
      if (!value(output).undefined)
        step.outputs.push_back({uint32_t(output), value(output).sizes, value(output).strides});
      builder_.set_ready(output);
    }
    if (options_.verify) step.expected = expected_values(*node(id).node, step.step);
    for (ExpectedValue& value : step.expected) value.strides.clear();  // laid out again as needed
    builder_.add(std::move(step), node(id).origin);
    ++plan().library_calls;
  }

  // The backend's own command for the call; false where it has none.
  bool emit_operator(NodeId id, const Step& call) {
    std::vector<TensorDescription> results;
    for (const ValueId output : node(id).outputs) {
      if (value(output).undefined || builder_.is_on_cpu(output)) return false;
      results.push_back(builder_.describe(output));
    }
    const auto read = [&](uint32_t slot) { return builder_.describe(ValueId(slot)); };
    std::optional<OperatorStep> step =
        operator_step(*options_.operators, call, read, std::move(results));
    if (!step) {
      count_left_over(call.op->name);
      return false;
    }
    for (uint32_t& slot : step->slots)
      slot = builder_.command_argument(ValueId(slot), node(id).origin);
    if (node(id).kind == CoreKind::kGather) emit_check(id);
    for (const ValueId output : node(id).outputs) {
      builder_.allocate(output, node(id).origin);
      step->slots.push_back(uint32_t(output));
      ++step->results;
    }
    builder_.add(*std::move(step), node(id).origin);
    ++plan().commands;
    return true;
  }

  // The pieces that no kernel wrote in place are copied there.
  void emit_cat(NodeId id) {
    const CoreNode& cat = node(id);
    const ValueId whole = cat.outputs[0];
    builder_.allocate(whole, cat.origin);
    const size_t dim = size_t(cat.dims[0]);
    Layout layout{value(whole).sizes, value(whole).strides, 0};
    int64_t begin = 0;
    const std::unordered_set<size_t>& joined = lowered_.buffer_assignment.joined.at(id);
    for (size_t i = 0; i < cat.inputs.size(); ++i) {
      const ValueId piece = cat.inputs[i];
      layout.sizes = value(piece).sizes;
      layout.offset = begin * layout.strides[dim];
      begin += layout.sizes[dim];
      if (joined.count(i)) continue;
      const uint32_t source = builder_.tensor_slot(piece);
      builder_.add_copy(source, builder_.region_slot(uint32_t(whole), layout, cat.origin),
                        cat.origin);
    }
    if (lowered_.buffer_assignment.root(whole) == whole) builder_.set_ready(whole);
  }

  bool is_input(ValueId id) const { return value(id).producer == kNoId; }

  void emit_scatter(NodeId id) {
    if (lowered_.buffer_assignment.written_early.count(id)) return;
    const CoreNode& scatter = node(id);
    const ValueId made = scatter.outputs[0], base = scatter.inputs[0];
    if (lowered_.buffer_assignment.root(made) == made) {
      builder_.allocate(made, scatter.origin);
      builder_.add_copy(builder_.tensor_slot(base), uint32_t(made), scatter.origin);
      builder_.set_ready(made);
    }
    // The offset counts from the start of an input's storage; of `made`, from its first element.
    Layout region = scatter.layout;
    region.offset += builder_.first_element(made) -
                     (is_input(graph_.base_of(base)) ? builder_.first_element(base) : 0);
    const uint32_t target =
        builder_.region_slot(builder_.tensor_slot(made), region, scatter.origin);
    builder_.add_copy(builder_.tensor_slot(scatter.inputs[1]), target, scatter.origin);
  }

  void emit_mutation(NodeId id) {
    const CoreNode& copy = node(id);
    if (copy.kind != CoreKind::kMutation) return;
    if (lowered_.buffer_assignment.written_in_place.count(id)) return;
    const auto kept = kept_sources_.find(id);
    const uint32_t source =
        kept != kept_sources_.end() ? kept->second : builder_.tensor_slot(copy.inputs[1]);
    builder_.add_copy(source, builder_.tensor_slot(copy.inputs[0]), copy.origin);
  }

  // A write-back that reads an input may come after another that writes it.
  void keep_source(NodeId id) {
    const CoreNode& copy = node(id);
    if (copy.kind != CoreKind::kMutation || value(graph_.base_of(copy.inputs[1])).producer != kNoId)
      return;
    kept_sources_[id] = builder_.copy_of(copy.inputs[1], copy.origin);
  }

  // ---- The end ----

  void finish() {
    arena_.assign();
    plan().arena_bytes = arena_.bytes();
    plan().first_write = first_write(plan());
    release_slots(plan());
    for (PlanStep& step : plan().steps)
      if (auto* kernel = std::get_if<KernelStep>(&step.action))
        for (BufferLocation& pointer : kernel->pointers)
          if (pointer.arena) pointer.bytes = arena_.offset(pointer.slot);
  }

  const CoreGraph& graph_;
  const std::vector<GraphInput>& inputs_;
  const PlanOptions options_;
  const LoweredItems lowered_;
  PlanBuilder builder_;
  std::unordered_map<NodeId, const CompiledPart*> part_of_;
  std::unordered_map<const torch::jit::Value*, ValueId> ids_;
  Arena arena_;
  std::unordered_map<ValueId, size_t> arena_index_;
  std::map<ValueId, BufferLocation> partials_;
  std::unordered_map<NodeId, uint32_t> kept_sources_;  // by write-back: a copy of an input
};

}  // namespace

Plan make_plan(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
               const PlanOptions& options) {
  return Planner(graph, inputs, options).make();
}

}  // namespace torch_lazy
