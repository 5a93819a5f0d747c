#include "passes/decompose_rules.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "ir/node_operator.h"
#include "ops/primitive.h"
#include "passes/dead_code.h"

namespace torch_lazy {

using torch::jit::Node;
using torch::jit::Value;

c10::ScalarType compute_dtype(c10::ScalarType dtype) {
  return c10::isReducedFloatingType(dtype) ? c10::kFloat : dtype;
}

Decomposition::Decomposition(GraphBuilder& builder, Node* node) : builder_(builder), node_(node) {
  builder.append_for(node);
}

// ---- Arguments ----

c10::IValue Decomposition::constant(size_t index) const {
  auto value = constant_value(argument(index));
  TORCH_CHECK(value.has_value(), "argument ", index, " of ", operator_name(node_),
              " is no constant");
  return *std::move(value);
}

bool Decomposition::given(size_t index) const {
  const auto kind = argument(index)->node()->kind();
  if (kind == c10::prim::AutogradZero) return false;
  return kind != c10::prim::Constant || !constant(index).isNone();
}

Term Decomposition::operand(size_t index, c10::ScalarType dtype,
                            std::optional<c10::ScalarType> first) {
  if (const auto number = constant_number(argument(index))) {
    Value* const rounded = builder_.number(*number, first.value_or(dtype));
    return {&builder_, builder_.to(rounded, dtype)};
  }
  // A number that is an argument of the window: a tensor without dimensions.
  Node* const made = argument(index)->node();
  if (made->kind() == c10::aten::ScalarImplicit)
    return {&builder_, builder_.to(made->input(), dtype)};
  return tensor(index).to(first.value_or(dtype)).to(dtype);
}

at::Scalar Decomposition::scalar(size_t index) const {
  const auto number = constant_number(argument(index));
  if (!number) throw NotConstant{};
  return *number;
}

bool Decomposition::is(size_t index, double number) const {
  const auto constant = constant_number(argument(index));
  if (constant && constant->isBoolean()) return constant->toDouble() == number;
  return constant && constant->equal(number);
}

int64_t Decomposition::integer(size_t index) const {
  return constant(index).toInt();
}

double Decomposition::real(size_t index) const {
  return scalar(index).toDouble();
}

bool Decomposition::boolean(size_t index) const {
  return constant(index).toBool();
}

std::string Decomposition::string(size_t index) const {
  return constant(index).toStringRef();
}

std::vector<int64_t> Decomposition::integers(size_t index) const {
  std::vector<int64_t> values;
  const c10::IValue list = constant(index);
  if (list.isInt()) return {list.toInt()};
  for (const c10::IValue& item : list.toListRef()) values.push_back(item.toInt());
  return values;
}

std::vector<bool> Decomposition::booleans(size_t index) const {
  std::vector<bool> values;
  const c10::IValue list = constant(index);
  for (const c10::IValue& item : list.toListRef())
    values.push_back(item.isBool() ? item.toBool() : item.toInt() != 0);
  return values;
}

std::vector<Value*> Decomposition::list(size_t index) const {
  Node* node = argument(index)->node();
  TORCH_CHECK(node->kind() == c10::prim::ListConstruct, "argument ", index, " of ",
              operator_name(node_), " is no list of tensors");
  return node->inputs().vec();
}

std::vector<int64_t> Decomposition::dims(size_t index, int64_t rank) const {
  std::vector<int64_t> dims;
  if (given(index)) dims = integers(index);
  for (int64_t& dim : dims) dim = dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
  if (dims.empty())
    for (int64_t i = 0; i < rank; ++i) dims.push_back(i);
  if (rank == 0) dims.clear();
  std::sort(dims.begin(), dims.end());
  return dims;
}

// ---- Results ----

bool Decomposition::needed(size_t index) const {
  const Value* output = node_->output(index);
  return output->hasUses() && has_complete_type(output);
}

bool Decomposition::made_here(Value* value) const {
  const auto& inserted = builder_.inserted();
  return std::find(inserted.rbegin(), inserted.rend(), value->node()) != inserted.rend();
}

bool Decomposition::finish(Term term, size_t index) {
  const TensorInfo type = output(index);
  Value* value = term.value;
  if (const auto number = constant_number(value); number && term.info().dims() == 0) {
    value = builder_.full(*number, type);
  } else {
    value = builder_.to(value, type.dtype);
    value = builder_.expand(value, type.sizes);
    const bool another_result =
        std::any_of(finished_.begin(), finished_.end(),
                    [&](const auto& result) { return result.second == value; });
    if (!made_here(value) || another_result || value->node()->kind() == c10::aten::as_strided)
      value = builder_.clone(value, type);
  }
  finished_.emplace_back(index, value);
  return true;
}

// ---- The table ----

const RuleTable& decomposition_rules() {
  static const RuleTable table = [] {
    RuleTable made;
    add_pointwise_rules(made);
    add_selection_rules(made);
    add_compound_rules(made);
    add_activation_rules(made);
    add_creation_rules(made);
    add_reduction_rules(made);
    add_softmax_rules(made);
    add_normalization_rules(made);
    add_loss_rules(made);
    add_pooling_rules(made);
    add_enlarging_rules(made);
    add_shape_rules(made);
    return made;
  }();
  return table;
}

const Rule* find_rule(std::string_view operator_name) {
  for (const std::string_view space : {"aten::", "torch_lazy::"}) {
    if (!operator_name.starts_with(space)) continue;
    const auto rule = decomposition_rules().find(std::string(operator_name.substr(space.size())));
    if (rule != decomposition_rules().end()) return &rule->second;
  }
  return nullptr;
}

namespace {

// Tensors on one device, all of dtypes that kernels know; no complex numbers.
bool is_plain(const Node* node) {
  std::optional<c10::Device> device;
  const auto plain = [&](const Value* value, bool result) {
    if (value->type()->kind() != c10::TypeKind::TensorType) return true;
    const auto& type = value->type()->expectRef<c10::TensorType>();
    if (!type.scalarType()) return true;  // undefined
    if (!primitive::has_type(*type.scalarType())) return false;
    // A tensor without dimensions may lie on the CPU.
    if (!result && type.sizes().size() == size_t{0}) return true;
    if (!type.device()) return true;
    if (device && *device != *type.device()) return false;
    device = type.device();
    return true;
  };
  for (const Value* output : node->outputs())
    if (!plain(output, true)) return false;
  for (const Value* input : node->inputs()) {
    if (!plain(input, false)) return false;
    const Node* maker = input->node();
    if (const auto number = constant_number(input); number && number->isComplex()) return false;
    if (maker->kind() != c10::prim::ListConstruct) continue;
    for (const Value* item : maker->inputs())
      if (!plain(item, false)) return false;
  }
  return true;
}

}  // namespace

bool decompose_node(GraphBuilder& builder, Node* node, const Rule& rule) {
  if (!is_plain(node)) return false;
  Decomposition decomposition(builder, node);
  bool applies = false;
  try {
    applies = rule(decomposition);
  } catch (const NotConstant&) {
    // The rule depends on a number that is an argument of the window.
  }
  if (!applies) {
    destroy_unused(builder.inserted());
    return false;
  }
  for (const auto& [index, value] : decomposition.finished()) {
    value->copyMetadata(node->output(index));
    node->output(index)->replaceAllUsesWith(value);
  }
  for (Value* output : node->outputs()) {
    if (!output->hasUses()) continue;
    TORCH_INTERNAL_ASSERT(!has_complete_type(output), "the rule of ", operator_name(node),
                          " left out result %", output->debugName());
    output->replaceAllUsesWith(builder.undefined());
  }
  node->destroy();
  return true;
}

bool decompose_node(GraphBuilder& builder, Node* node) {
  const Rule* const rule = find_rule(operator_name(node));
  return rule && decompose_node(builder, node, *rule);
}

std::shared_ptr<torch::jit::Graph> decompose_by(const std::function<Rule(const Node&)>& rule_of,
                                                std::shared_ptr<torch::jit::Graph> graph,
                                                c10::IntArrayRef input_offsets) {
  const std::vector<Node*> nodes(graph->nodes().begin(), graph->nodes().end());
  std::vector<Rule> rules;
  rules.reserve(nodes.size());
  for (const Node* const node : nodes)
    rules.push_back(node->hasAttribute(kLibraryAttribute) ? Rule() : rule_of(*node));
  if (std::ranges::none_of(rules, [](const Rule& rule) { return bool(rule); })) return graph;
  GraphBuilder builder(*graph, input_offsets);
  // As in decompose: nodes go to the end of the graph in their order, or what they become does.
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->kind() == c10::prim::Constant) continue;
    if (!rules[i] || !decompose_node(builder, nodes[i], rules[i]))
      nodes[i]->moveBefore(graph->return_node());
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
