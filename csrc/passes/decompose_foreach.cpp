// Operators on lists of tensors: one operator for each element, decomposed in its turn.

#include <string_view>
#include <unordered_map>

#include "ir/node_operator.h"
#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Where an argument of an element's operator comes from.
enum class From : uint8_t {
  kFirst,   // the first argument, second argument, ...: a list, of which the element is taken,
  kSecond,  // or one value for all
  kThird,
  kFourth,
  kOne,  // the number 1
  kNone,
  kFalse,
};

struct Element {
  const char* name;
  const char* overload;
  std::vector<From> arguments;
};

using Elements = std::unordered_map<std::string, Element>;

void add_unary(Elements& table) {
  for (const char* name :
       {"abs",  "acos", "asin",       "atan",  "ceil",  "cos",     "cosh",  "erf",
        "erfc", "exp",  "expm1",      "floor", "frac",  "log",     "log10", "log1p",
        "log2", "neg",  "reciprocal", "round", "rsqrt", "sigmoid", "sign",  "sin",
        "sinh", "sqrt", "tan",        "tanh",  "trunc", "lgamma",  "zero",  "max"})
    table[name] = {name, "", {From::kFirst}};
  table["clone"] = {"clone", "", {From::kFirst, From::kNone}};
  table["copy"] = {"copy", "", {From::kFirst, From::kSecond, From::kFalse}};
}

// With a list, a number, a list of numbers or one tensor as the second argument.
void add_binary(Elements& table) {
  using enum From;
  for (const std::string name : {"add", "sub"}) {
    const char* const core = name == "add" ? "add" : "sub";
    table[name + ".List"] = {core, "Tensor", {kFirst, kSecond, kThird}};
    table[name + ".Scalar"] =
        table[name + ".ScalarList"] = {core, "Scalar", {kFirst, kSecond, kOne}};
  }
  table["add.Tensor"] = {"add", "Tensor", {kFirst, kSecond, kThird}};
  for (const std::string name : {"mul", "div"}) {
    const char* const core = name == "mul" ? "mul" : "div";
    table[name + ".List"] = table[name + ".Tensor"] = {core, "Tensor", {kFirst, kSecond}};
    table[name + ".Scalar"] = table[name + ".ScalarList"] = {core, "Scalar", {kFirst, kSecond}};
  }
  const auto bound = [&](const std::string& name, const char* core) {
    table[name + ".List"] = {core, "Tensor", {kFirst, kSecond}};
    table[name + ".Scalar"] = table[name + ".ScalarList"] = {core, "", {kFirst, kSecond}};
  };
  bound("clamp_min", "clamp_min");
  bound("clamp_max", "clamp_max");
  bound("maximum", "clamp_min");
  bound("minimum", "clamp_max");
  table["pow.List"] = {"pow", "Tensor_Tensor", {kFirst, kSecond}};
  table["pow.Scalar"] = table["pow.ScalarList"] = {"pow", "Tensor_Scalar", {kFirst, kSecond}};
  table["pow.ScalarAndTensor"] = {"pow", "Scalar", {kFirst, kSecond}};
}

void add_ternary(Elements& table) {
  using enum From;
  table["lerp.List"] = {"lerp", "Tensor", {kFirst, kSecond, kThird}};
  table["lerp.Scalar"] = table["lerp.ScalarList"] = {"lerp", "Scalar", {kFirst, kSecond, kThird}};
  for (const std::string name : {"addcmul", "addcdiv"})
    table[name + ".Scalar"] = table[name + ".ScalarList"] = {
        name == "addcmul" ? "addcmul" : "addcdiv", "", {kFirst, kSecond, kThird, kFourth}};
  table["norm.Scalar"] = {"linalg_vector_norm", "", {kFirst, kSecond, kNone, kFalse, kThird}};
}

const Elements& elements() {
  static const Elements table = [] {
    Elements made;
    add_unary(made);
    add_binary(made);
    add_ternary(made);
    return made;
  }();
  return table;
}

// Lists of numbers that are constants, each read once for all of its elements.
using NumberLists = std::unordered_map<const Value*, c10::IValue>;

// Element `index` of a list of tensors or numbers; what is no list is the same for all.
Value* element_of(GraphBuilder& builder, Value* argument, size_t index, NumberLists& lists) {
  if (argument->type()->kind() != c10::TypeKind::ListType) return argument;
  const Node* node = argument->node();
  if (node->kind() == c10::prim::ListConstruct) return node->input(index);
  auto known = lists.find(argument);
  if (known == lists.end()) {
    auto numbers = constant_value(argument);
    TORCH_CHECK(numbers.has_value(), "a list of %", argument->debugName(), " is no constant");
    known = lists.emplace(argument, *std::move(numbers)).first;
  }
  return builder.scalar(known->second.toListRef()[index].toScalar());
}

Value* argument_of(GraphBuilder& builder, Node* node, From from, size_t index, NumberLists& lists) {
  switch (from) {
    case From::kOne:
      return builder.integer(1);
    case From::kNone:
      return builder.none();
    case From::kFalse:
      return builder.boolean(false);
    default:
      return element_of(builder, node->inputs().at(size_t(from)), index, lists);
  }
}

}  // namespace

bool decompose_foreach(GraphBuilder& builder, Node* unpack) {
  constexpr std::string_view kPrefix = "aten::_foreach_";
  Node* const node = unpack->input()->node();
  const std::string name = operator_name(node);
  if (!name.starts_with(kPrefix)) return false;
  const auto found = elements().find(name.substr(kPrefix.size()));
  if (found == elements().end() || unpack->input()->uses().size() != 1) return false;
  const Element& element = found->second;

  std::vector<Node*> made;
  NumberLists lists;
  for (size_t i = 0; i < unpack->outputs().size(); ++i) {
    Value* const output = unpack->output(i);
    if (!output->hasUses()) continue;
    builder.append_for(node);
    std::vector<Value*> arguments;
    for (const From from : element.arguments)
      arguments.push_back(argument_of(builder, node, from, i, lists));
    Value* const value = builder.call((std::string("aten::") + element.name).c_str(),
                                      element.overload, arguments, info_of(output));
    value->copyMetadata(output);
    output->replaceAllUsesWith(value);
    made.push_back(value->node());
  }
  unpack->destroy();
  node->destroy();
  for (Node* each : made)
    if (!decompose_node(builder, each)) each->moveBefore(builder.graph().return_node());
  return true;
}

}  // namespace torch_lazy
