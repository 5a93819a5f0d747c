#include "plan/graph_parts.h"

#include <algorithm>
#include <utility>

#include "base/metrics.h"
#include "offload/runtime_device.h"
#include "passes/graph_builder.h"
#include "passes/part_graph.h"
#include "plan/operator_step.h"
#include "plan/step_from_node.h"

namespace torch_lazy {
namespace {

class PartCompiler {
 public:
  PartCompiler(const CoreGraph& graph, const GraphCompiler& compiler,
               const std::vector<int64_t>& input_offsets, c10::Device device)
      : graph_(graph), compiler_(compiler), input_offsets_(input_offsets), device_(device) {
    for (size_t id = 0; id < graph.values.size(); ++id)
      ids_.emplace(graph.values[id].value, ValueId(id));
  }

  std::vector<CompiledItem> run() {
    std::vector<CompiledItem> items;
    for (PartitionedItem& item : partition(graph_, [&](NodeId id) { return takes(id); })) {
      if (const auto* id = std::get_if<NodeId>(&item)) {
        items.emplace_back(*id);
        continue;
      }
      GraphPart& part = std::get<GraphPart>(item);
      DeviceCommand command = compile(part);
      if (command) {
        items.emplace_back(CompiledPart{std::move(part), std::move(command)});
      } else {
        count_left_over(name_of(part));
        for (const NodeId id : part.nodes) items.emplace_back(id);
      }
    }
    return items;
  }

 private:
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  bool takes(NodeId id) const {
    const CoreNode& node = graph_.nodes[size_t(id)];
    if (node.kind == CoreKind::kView) return takes_view(id);
    std::vector<TensorDescription> results;
    for (const ValueId output : node.outputs) {
      if (value(output).undefined || is_on_cpu(value(output), device_)) return false;
      results.push_back(describe(value(output)));
    }
    const Step call = step_from_node(*node.node, device_, [&](const torch::jit::Value* read) {
      return uint32_t(ids_.at(read));
    });
    const auto described = describe_call(
        call, [&](uint32_t slot) { return describe(value(ValueId(slot))); }, std::move(results));
    return described && compiler_.supports(described->call);
  }

  static OperatorCall call_of(const NamedView& view, const TensorDescription& from) {
    const ViewOperator names = operator_of(view.kind);
    const OperatorInfo& op = operator_info(names.name, names.overload);
    OperatorCall call{op.name, &op.handle.schema(), {{{from}, {}}}, {}};
    for (c10::IValue& constant : constants_of(view))
      call.arguments.push_back({{}, std::move(constant)});
    call.results.push_back({from.dtype, view.sizes, contiguous_strides(view.sizes)});
    return call;
  }

  bool takes_view(NodeId id) const {
    const auto chain = views_in_part(graph_, id, input_offsets_);
    if (!chain) return false;
    const CoreNode& view = graph_.nodes[size_t(id)];
    TensorDescription from = describe(value(view.inputs[0]));
    return std::all_of(chain->begin(), chain->end(), [&](const NamedView& named) {
      const OperatorCall call = call_of(named, from);
      from = call.results[0];
      return compiler_.supports(call);
    });
  }

  DeviceCommand compile(const GraphPart& part) const {
    SubgraphCall call{graph_of_part(graph_, part, input_offsets_), {}, {}};
    for (const ValueId id : part.inputs) call.inputs.push_back(describe(value(id)));
    for (const ValueId id : part.results) call.results.push_back(describe(value(id)));
    return compiler_.compile(call);
  }

  const CoreGraph& graph_;
  const GraphCompiler& compiler_;
  const std::vector<int64_t>& input_offsets_;
  const c10::Device device_;
  std::unordered_map<const torch::jit::Value*, ValueId> ids_;
};

}  // namespace

std::vector<CompiledItem> compile_parts(const CoreGraph& graph, const GraphCompiler& compiler,
                                        const std::vector<int64_t>& input_offsets,
                                        c10::Device device) {
  return PartCompiler(graph, compiler, input_offsets, device).run();
}

std::string name_of(const GraphPart& part) {
  const size_t operators = part.nodes.size();
  return "graph of " + std::to_string(operators) + (operators == 1 ? " operator" : " operators");
}

void count_left_over(const std::string& name) {
  increment(metrics().fallbacks[name + (is_offloaded() ? " on the CPU" : " by ATen")]);
}

TensorDescription describe(const CoreValue& value) {
  return {value.dtype,
          {value.sizes.begin(), value.sizes.end()},
          {value.strides.begin(), value.strides.end()}};
}

bool is_on_cpu(const CoreValue& value, c10::Device device) {
  const auto type = value.value->type()->cast<c10::TensorType>();
  return !device.is_cpu() && type && type->device() && type->device()->is_cpu();
}

}  // namespace torch_lazy
