#include "passes/core_graph.h"

#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <unordered_map>

#include "ir/node_operator.h"
#include "ir/print.h"
#include "ops/effects.h"
#include "passes/core_operators.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using primitive::Op;
using torch::jit::Node;
using torch::jit::Value;

class GraphReader {
 public:
  explicit GraphReader(std::shared_ptr<torch::jit::Graph> graph) { core_.graph = std::move(graph); }

  CoreGraph read() {
    for (Value* input : core_.graph->inputs()) {
      const ValueId id = define(input);
      core_.values[size_t(id)].input = int32_t(core_.inputs.size());
      core_.inputs.push_back(id);
    }
    for (Node* node : core_.graph->nodes()) read_node(node);
    for (Value* output : core_.graph->outputs()) {
      const ValueId id = ids_.at(output);
      core_.outputs.push_back(id);
      core_.values[size_t(id)].users.push_back(kNoId);
    }
    return std::move(core_);
  }

 private:
  ValueId define(const Value* value) {
    const ValueId id = ValueId(core_.values.size());
    CoreValue made;
    made.value = value;
    if (has_complete_type(value)) {
      const auto& type = value->type()->expectRef<c10::TensorType>();
      made.dtype = *type.scalarType();
      const auto sizes = *type.sizes().concrete_sizes(), strides = *type.strides().concrete_sizes();
      made.sizes.assign(sizes.begin(), sizes.end());
      made.strides.assign(strides.begin(), strides.end());
    } else {
      made.undefined = true;
    }
    core_.values.push_back(std::move(made));
    ids_.emplace(value, id);
    return id;
  }

  // ---- Arguments ----

  static bool is_folded(const Node& node) {
    return node.kind() == c10::prim::Constant || node.kind() == c10::prim::AutogradZero ||
           node.kind() == c10::prim::ListConstruct || node.kind() == c10::prim::ListUnpack ||
           node.kind() == c10::aten::ScalarImplicit;
  }

  // The tensors of an argument: itself, or those of a list. Constants of tensor type become
  // numbers.
  void tensors(const Value* value, std::vector<ValueId>& result) {
    const Node& node = *value->node();
    if (node.kind() == c10::prim::ListConstruct) {
      for (const Value* element : node.inputs()) tensors(element, result);
      return;
    }
    if (const auto found = ids_.find(value); found != ids_.end()) {
      result.push_back(found->second);
      return;
    }
    // A number that is an argument of the window.
    if (node.kind() == c10::aten::ScalarImplicit) tensors(node.input(), result);
    if (node.kind() != c10::prim::Constant || value->type()->kind() != c10::TypeKind::TensorType)
      return;
    const auto constant = constant_value(value);
    if (!constant || !constant->isTensor() || constant->toTensor().dim() != 0) return;
    result.push_back(number(value, constant->toTensor()));
  }

  ValueId number(const Value* value, const at::Tensor& tensor) {
    CoreNode node;
    node.kind = CoreKind::kNumber;
    node.number = tensor.item();
    const ValueId id = ValueId(core_.values.size());
    CoreValue made;
    made.dtype = tensor.scalar_type();
    made.value = value;
    made.producer = NodeId(core_.nodes.size());
    core_.values.push_back(std::move(made));
    ids_.emplace(value, id);
    node.outputs = {id};
    core_.nodes.push_back(std::move(node));
    return id;
  }

  std::vector<int64_t> integers(const Node& node, size_t argument) const {
    const auto value = constant_value(node.input(argument));
    TORCH_CHECK(value && value->isIntList(), operator_name(&node), " has no constant list as its ",
                "argument ", argument);
    return value->toIntVector();
  }

  // The second argument, counted from the first of the dimensions.
  static int64_t dimension(const Node& node, const Extents& sizes) {
    const auto dim = constant_value(node.input(1));
    TORCH_CHECK(dim && dim->isInt(), operator_name(&node), " has no constant dimension");
    return dim->toInt() < 0 ? dim->toInt() + int64_t(sizes.size()) : dim->toInt();
  }

  // ---- Nodes ----

  // Views, partial writes and writes to inputs say where values lie; none is a call by itself.
  static bool stays_whole(const Node& node) {
    return node.hasAttribute(kLibraryAttribute) && node.kind() != c10::aten::as_strided &&
           node.kind() != c10::aten::as_strided_scatter && node.kind() != c10::aten::copy_;
  }

  void read_node(Node* jit_node) {
    if (is_folded(*jit_node)) return;
    CoreNode node;
    node.node = jit_node;
    if (jit_node->hasAttribute(kOriginAttribute)) node.origin = jit_node->i(kOriginAttribute);
    const std::string name = operator_name(jit_node);
    const CoreOperator* const core = stays_whole(*jit_node) ? nullptr : find_core_operator(name);
    if (core) {
      node.kind = core->kind;
      node.op = core->op;
    }
    const size_t tensor_arguments = core ? core->tensors : jit_node->inputs().size();
    for (size_t i = 0; i < tensor_arguments; ++i) tensors(jit_node->input(i), node.inputs);
    for (const Value* output : jit_node->outputs()) {
      if (output->type()->kind() == c10::TypeKind::TensorType)
        node.outputs.push_back(define(output));
      if (output->type()->kind() != c10::TypeKind::ListType) continue;
      for (const torch::jit::Use& use : output->uses())
        for (const Value* element : use.user->outputs()) node.outputs.push_back(define(element));
    }
    read_attributes(*jit_node, name, node);
    node.fails_on_data = effects_of(operator_of(jit_node)).fails_on_data;
    if (!computable(node)) make_library(node, *jit_node);
    const NodeId id = NodeId(core_.nodes.size());
    for (const ValueId output : node.outputs) core_.values[size_t(output)].producer = id;
    for (const ValueId input : node.inputs) {
      std::vector<NodeId>& users = core_.values[size_t(input)].users;
      if (users.empty() || users.back() != id) users.push_back(id);
    }
    core_.nodes.push_back(std::move(node));
  }

  void make_library(CoreNode& node, const Node& jit_node) {
    node.kind = CoreKind::kLibrary;
    node.inputs.clear();
    for (const Value* input : jit_node.inputs()) tensors(input, node.inputs);
  }

  void read_attributes(const Node& jit_node, const std::string& name, CoreNode& node) {
    switch (node.kind) {
      case CoreKind::kView:
      case CoreKind::kScatter: {
        const size_t first = node.kind == CoreKind::kView ? 1 : 2;
        const std::vector<int64_t> sizes = integers(jit_node, first),
                                   strides = integers(jit_node, first + 1);
        node.layout.sizes.assign(sizes.begin(), sizes.end());
        node.layout.strides.assign(strides.begin(), strides.end());
        const auto offset = constant_value(jit_node.input(first + 2));
        TORCH_CHECK(offset && offset->isInt(), name, " has no constant offset");
        node.layout.offset = offset->toInt();
        break;
      }
      case CoreKind::kReduction:
        read_reduction(jit_node, node);
        break;
      case CoreKind::kScan:
        read_scan(jit_node, node);
        break;
      case CoreKind::kFill:
        read_number(jit_node, 1, node, node.number);
        break;
      case CoreKind::kArange:
        read_number(jit_node, 0, node, node.number);
        read_number(jit_node, 2, node, node.step);
        break;
      case CoreKind::kGather:
        read_gather(jit_node, name, node);
        break;
      case CoreKind::kCat: {
        node.dims = {dimension(jit_node, core_.values[size_t(node.outputs[0])].sizes)};
        break;
      }
      case CoreKind::kFlip: {
        const auto rank = int64_t(core_.values[size_t(node.inputs[0])].sizes.size());
        for (const int64_t dim : integers(jit_node, 1))
          node.flipped.push_back(dim < 0 ? dim + rank : dim);
        if (rank == 0) node.kind = CoreKind::kLibrary;
        break;
      }
      case CoreKind::kPointwise:
        if (name == "aten::div.Tensor_mode") {
          const auto mode = constant_value(jit_node.input(2));
          const bool named = mode && mode->isString();
          node.op = !named                           ? Op::kDiv
                    : mode->toStringRef() == "floor" ? Op::kDivFloor
                                                     : Op::kDivTrunc;
        }
        if (node.op == Op::kFma) {  // a + b * c
          const auto factor = constant_number(jit_node.input(3));
          const c10::ScalarType dtype = core_.values[size_t(node.outputs[0])].dtype;
          if (!factor || !factor->equal(1) || !c10::isFloatingType(dtype))
            node.kind = CoreKind::kLibrary;
          else
            std::rotate(node.inputs.begin(), node.inputs.begin() + 1, node.inputs.end());
        }
        if (node.op == Op::kAdd || node.op == Op::kSub) {
          const auto alpha = constant_number(jit_node.input(2));
          if (!alpha || !alpha->equal(1)) node.kind = CoreKind::kLibrary;
        }
        break;
      default:
        break;
    }
  }

  void read_number(const Node& jit_node, size_t argument, CoreNode& node, c10::Scalar& number) {
    const auto value = constant_number(jit_node.input(argument));
    if (value)
      number = *value;
    else
      node.kind = CoreKind::kLibrary;
  }

  void read_reduction(const Node& jit_node, CoreNode& node) {
    const auto rank = int64_t(core_.values[size_t(node.inputs[0])].sizes.size());
    const auto dims = constant_value(jit_node.input(1));
    std::vector<int64_t> list;
    if (dims && dims->isIntList()) list = dims->toIntVector();
    if (dims && dims->isInt()) list = {dims->toInt()};
    if (list.empty())
      for (int64_t d = 0; d < rank; ++d) list.push_back(d);
    for (int64_t& d : list) d = d < 0 ? d + rank : d;
    std::sort(list.begin(), list.end());
    node.dims.assign(list.begin(), list.end());
    const auto keepdim = constant_value(jit_node.input(2));
    node.keepdim = keepdim && keepdim->isBool() && keepdim->toBool();
    // An index counts along one dimension.
    const bool index = node.op == Op::kReduceArgMax || node.op == Op::kReduceArgMin;
    if ((index && list.size() != 1) || rank == 0) node.kind = CoreKind::kLibrary;
  }

  void read_scan(const Node& jit_node, CoreNode& node) {
    if (!jit_node.hasAttribute(kKernelAttribute)) {
      node.kind = CoreKind::kLibrary;
      return;
    }
    const Extents& sizes = core_.values[size_t(node.inputs[0])].sizes;
    node.dims = {dimension(jit_node, sizes)};
    if (sizes[size_t(node.dims[0])] != 1) return;
    node.kind = CoreKind::kCopy;
    node.op = Op::kCast;
  }

  void read_gather(const Node& jit_node, const std::string& name, CoreNode& node) {
    if (name == "aten::embedding") {
      node.gather = GatherKind::kRows;
      node.dims = {0};
      return;
    }
    // (self, dim, index)
    node.gather = name == "aten::index_select" ? GatherKind::kIndexSelect : GatherKind::kElements;
    node.inputs.clear();
    tensors(jit_node.input(0), node.inputs);
    tensors(jit_node.input(2), node.inputs);
    const Extents& sizes = core_.values[size_t(node.inputs[0])].sizes;
    node.dims = {dimension(jit_node, sizes)};
    if (sizes.empty()) node.kind = CoreKind::kLibrary;
  }

  // Whether a kernel can do it: dtypes that kernels have, at least one element.
  bool computable(const CoreNode& node) const {
    if (node.kind == CoreKind::kLibrary || node.kind == CoreKind::kMutation) return true;
    if (node.kind == CoreKind::kView || node.kind == CoreKind::kScatter) return true;
    for (const auto* ids : {&node.inputs, &node.outputs})
      for (const ValueId id : *ids) {
        const CoreValue& value = core_.values[size_t(id)];
        if (value.undefined || !primitive::has_type(value.dtype) || value.numel() == 0)
          return false;
      }
    if (node.kind != CoreKind::kPointwise) return true;
    return !primitive::may_raise_on_integers(node.op) ||
           c10::isFloatingType(core_.values[size_t(node.outputs[0])].dtype);
  }

  CoreGraph core_;
  std::unordered_map<const Value*, ValueId> ids_;
};

}  // namespace

int64_t CoreValue::numel() const {
  return c10::multiply_integers(sizes);
}

CoreGraph read_core_graph(std::shared_ptr<torch::jit::Graph> graph) {
  return GraphReader(std::move(graph)).read();
}

ValueId CoreGraph::base_of(ValueId id) const {
  const NodeId producer = values[size_t(id)].producer;
  if (producer == kNoId || nodes[size_t(producer)].kind != CoreKind::kView) return id;
  return nodes[size_t(producer)].inputs[0];
}

}  // namespace torch_lazy
