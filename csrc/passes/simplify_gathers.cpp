#include "passes/simplify_gathers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/node_operator.h"
#include "passes/core_operators.h"
#include "passes/simplify_algebra.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// What is computed again costs little beside what is left out: so many elements less.
constexpr int64_t kLeastReduction = 8;
constexpr size_t kMostOperators = 8;
constexpr size_t kMostReadsOfGather = 2;

bool is_output(const Value* value) {
  return std::ranges::any_of(value->uses(), [](const torch::jit::Use& use) {
    return use.user->kind() == c10::prim::Return;
  });
}

// Whether the value is in memory before any kernel of the window runs, or is made by a library.
bool is_in_memory(const Value* value) {
  const Node* node = value->node();
  if (node->kind() == c10::aten::as_strided) node = node->input(0)->node();
  if (node->kind() == c10::prim::Param || node->hasAttribute(kLibraryAttribute)) return true;
  return find_operator(node) && !find_core_operator(operator_name(node));
}

class Gather {
 public:
  Gather(GraphBuilder& builder, Node* node)
      : builder_(builder), node_(node), source_(info_of(node->input(0))) {
    made_ = info_of(node->output());
    made_.strides = contiguous_strides(made_.sizes);
  }

  // Null where it is not to be moved.
  Value* moved() {
    Value* const value = node_->input(0);
    if (!is_pointwise(*value->node()) || is_output(value) || !along_one_dimension()) return nullptr;
    return takes_few_elements(*node_) && is_cheap(value) ? gathered(value) : nullptr;
  }

 private:
  // Whether the output has the source's sizes but in the dimension that is indexed.
  bool along_one_dimension() {
    const auto dim = constant_value(node_->input(1));
    if (!dim || !dim->isInt() || source_.dims() == 0) return false;
    dim_ = dim->toInt() < 0 ? dim->toInt() + source_.dims() : dim->toInt();
    if (made_.dims() != source_.dims()) return false;
    for (int64_t i = 0; i < source_.dims(); ++i)
      if (i != dim_ && made_.sizes[size_t(i)] != source_.sizes[size_t(i)]) return false;
    return true;
  }

  // An operand that is the same for all indices.
  bool is_constant_along(const Value* value) const {
    if (constant_number(value)) return true;
    const TensorInfo info = info_of(value);
    const int64_t dim = dim_ - (source_.dims() - info.dims());
    return dim < 0 || (info.sizes[size_t(dim)] == 1 && source_.sizes[size_t(dim_)] != 1);
  }

  bool is_cheap(Value* value) {
    if (seen_.count(value) != 0 || is_constant_along(value)) return true;
    seen_.emplace(value, nullptr);
    if (is_in_memory(value)) return ++reads_ <= kMostReadsOfGather;
    const size_t operands = operand_count(*value->node());
    if (operands == 0 || ++operators_ > kMostOperators) return false;
    for (size_t i = 0; i < operands; ++i)
      if (!is_cheap(value->node()->input(i))) return false;
    return true;
  }

  Value* gathered(Value* value) {
    if (is_constant_along(value)) return value;
    Value*& known = seen_.at(value);
    if (!known) known = is_in_memory(value) ? read(value) : computed(value->node());
    return known;
  }

  TensorInfo made_of(const Value* value) const {
    TensorInfo info = made_;
    info.dtype = info_of(value).dtype;
    return info;
  }

  Value* read(Value* value) {
    std::vector<Value*> inputs = node_->inputs().vec();
    inputs[0] = builder_.expand(value, source_.sizes);
    return builder_.call_like(node_, inputs, made_of(value));
  }

  Value* computed(Node* node) {
    std::vector<Value*> inputs = node->inputs().vec();
    for (size_t i = 0; i < operand_count(*node); ++i) inputs[i] = gathered(inputs[i]);
    return builder_.call_like(node, inputs, made_of(node->output()));
  }

  GraphBuilder& builder_;
  Node* const node_;
  const TensorInfo source_;
  TensorInfo made_;
  int64_t dim_ = 0;
  size_t operators_ = 0, reads_ = 0;
  std::unordered_map<Value*, Value*> seen_;  // full operands, by what they are where gathered
};

}  // namespace

bool takes_few_elements(const Node& gather) {
  return info_of(gather.output()).elements() * kLeastReduction <=
         info_of(gather.input(0)).elements();
}

Value* gather_of_operands(GraphBuilder& builder, Node* node) {
  static const c10::Symbol kIndexSelect = c10::Symbol::fromQualString("aten::index_select");
  if (node->kind() != c10::aten::gather && node->kind() != kIndexSelect) return nullptr;
  if (!has_complete_type(node->output()) || node->hasAttribute(kLibraryAttribute)) return nullptr;
  const TensorInfo made = info_of(node->output());
  if (made.strides != contiguous_strides(made.sizes)) return nullptr;
  builder.insert_before(node);
  return Gather(builder, node).moved();
}

}  // namespace torch_lazy
