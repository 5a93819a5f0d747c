// What a decomposition rule works with: the node it replaces, and the table it stands in.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "passes/decompose_term.h"

namespace torch_lazy {

// float for bfloat16 and half, which are computed in float and rounded last; else the dtype itself.
c10::ScalarType compute_dtype(c10::ScalarType dtype);

// A rule asked for a number that only a run will know.
struct NotConstant {};

// A node that a rule is replacing: its arguments by their position in the schema, and its results.
class Decomposition {
 public:
  using Node = torch::jit::Node;
  using Value = torch::jit::Value;

  Decomposition(GraphBuilder& builder, Node* node);

  GraphBuilder& builder() { return builder_; }
  Node* node() { return node_; }

  // ---- Arguments ----
  // Not None and not undefined.
  bool given(size_t index) const;
  Term tensor(size_t index) { return {&builder_, argument(index)}; }
  // A tensor or a number as a term of the dtype, cast to the dtype `first` before that.
  Term operand(size_t index, c10::ScalarType dtype,
               std::optional<c10::ScalarType> first = std::nullopt);
  // As a term of compute(), where the operator casts its operands to one dtype, which is the
  // result's, before it computes in a wider one.
  Term common_operand(size_t index) { return operand(index, compute(), output().dtype); }
  bool is_number(size_t index) const { return constant_number(argument(index)).has_value(); }
  // Raises NotConstant for a number that is an argument of the window.
  at::Scalar scalar(size_t index) const;
  // A constant, and this number.
  bool is(size_t index, double number) const;
  int64_t integer(size_t index) const;
  double real(size_t index) const;
  bool boolean(size_t index) const;
  std::string string(size_t index) const;
  std::vector<int64_t> integers(size_t index) const;
  std::vector<bool> booleans(size_t index) const;
  std::vector<Value*> list(size_t index) const;
  // A list of dimensions or one dimension, counted from the first of `rank`, ascending. None and an
  // empty list: all.
  std::vector<int64_t> dims(size_t index, int64_t rank) const;
  // A reduction mode of losses.
  bool is_mean(size_t index) const { return integer(index) == 1; }
  bool is_sum(size_t index) const { return integer(index) == 2; }

  // ---- Results ----
  TensorInfo output(size_t index = 0) const { return info_of(node_->output(index)); }
  // Whether the result is a tensor that something reads.
  bool needed(size_t index) const;
  // In which the first result is computed.
  c10::ScalarType compute() const { return compute_dtype(output().dtype); }
  Term full(const at::Scalar& value, const TensorInfo& info) {
    return {&builder_, builder_.full(value, info)};
  }
  Term iota(int64_t count) { return {&builder_, builder_.iota(count)}; }
  // Makes the term result `index`: cast, expanded and laid out as the result's type says. Always
  // true, as a rule's last word.
  bool finish(Term term, size_t index = 0);
  // The results so far, by index.
  const std::vector<std::pair<size_t, Value*>>& finished() const { return finished_; }

 private:
  Value* argument(size_t index) const { return node_->inputs().at(index); }
  c10::IValue constant(size_t index) const;
  bool made_here(Value* value) const;

  GraphBuilder& builder_;
  Node* node_;
  std::vector<std::pair<size_t, Value*>> finished_;
};

// Gives every needed result with `finish`, or returns false: the node stays whole.
using Rule = std::function<bool(Decomposition&)>;
// By operator and overload: "add.Tensor", without its namespace.
using RuleTable = std::unordered_map<std::string, Rule>;

// A rule's name in the table.
inline std::string with_overload(std::string name, const std::string& overload) {
  if (!overload.empty()) name += "." + overload;
  return name;
}

// One for each family, in the file of its name.
void add_pointwise_rules(RuleTable& table);
void add_selection_rules(RuleTable& table);
void add_compound_rules(RuleTable& table);
void add_activation_rules(RuleTable& table);
void add_creation_rules(RuleTable& table);
void add_reduction_rules(RuleTable& table);
void add_softmax_rules(RuleTable& table);
void add_normalization_rules(RuleTable& table);
void add_loss_rules(RuleTable& table);
void add_pooling_rules(RuleTable& table);
void add_enlarging_rules(RuleTable& table);
void add_shape_rules(RuleTable& table);

const RuleTable& decomposition_rules();
// Of an operator by its qualified name: those of ATen and of torch_lazy. Null where there is none.
const Rule* find_rule(std::string_view operator_name);

// Replaces the node by what its rule makes, at the end of the graph, and destroys it; false where
// it stays whole.
bool decompose_node(GraphBuilder& builder, torch::jit::Node* node, const Rule& rule);
// By the rule of its operator, where there is one.
bool decompose_node(GraphBuilder& builder, torch::jit::Node* node);
// All nodes for which there is a rule, but those marked by kLibraryAttribute. For passes of their
// own, behind `decompose`.
std::shared_ptr<torch::jit::Graph> decompose_by(
    const std::function<Rule(const torch::jit::Node&)>& rule_of,
    std::shared_ptr<torch::jit::Graph> graph, c10::IntArrayRef input_offsets);
// For operators on lists: the node that takes the list of results apart, and the operator with it.
bool decompose_foreach(GraphBuilder& builder, torch::jit::Node* unpack);
bool decompose_fused_optimizer(GraphBuilder& builder, torch::jit::Node* unpack);

}  // namespace torch_lazy
