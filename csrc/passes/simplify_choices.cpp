// Partial writes as choices by index: choice_of_write of simplify_partial_writes.h.
#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/node_operator.h"
#include "passes/core_operators.h"
#include "passes/decompose_term.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_partial_writes.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// What may be computed, in the units of primitive::cost_of, for elements that are not written:
// where at least half of them are, and else.
constexpr int kMostCostOfHalf = 40, kMostCostOfFew = 8;
// Writes one above the other: each is a choice for every element. A buffer that is filled row by
// row is written to.
constexpr int kMostChoices = 4;

// The elements start, start + step, ... of a dimension of the base's.
struct Span {
  int64_t start = 0, step = 1, count = 1;
  bool is_whole(int64_t size) const { return start == 0 && step == 1 && count == size; }
};

// By the dimensions of the dense `whole`. Nullopt where a dimension of the region runs along none.
std::optional<std::vector<Span>> spans_of(const TensorInfo& whole, const Layout& region) {
  if (!is_dense(whole.sizes, whole.strides)) return std::nullopt;
  std::vector<size_t> order;
  for (size_t d = 0; d < whole.sizes.size(); ++d)
    if (whole.sizes[d] > 1) order.push_back(d);
  std::ranges::sort(order, [&](size_t a, size_t b) { return whole.strides[a] > whole.strides[b]; });
  std::vector<Span> spans(whole.sizes.size());
  int64_t left = region.offset;
  for (const size_t d : order) {
    spans[d].start = left / whole.strides[d];
    left %= whole.strides[d];
  }
  if (left != 0) return std::nullopt;
  std::vector<bool> taken(whole.sizes.size());
  for (size_t i = 0; i < region.sizes.size(); ++i) {
    if (region.sizes[i] == 1) continue;
    const int64_t stride = region.strides[i];
    const auto along = std::ranges::find_if(
        order, [&](size_t d) { return stride > 0 && stride >= whole.strides[d]; });
    if (along == order.end() || stride % whole.strides[*along] != 0 || taken[*along])
      return std::nullopt;
    taken[*along] = true;
    spans[*along].step = stride / whole.strides[*along];
    spans[*along].count = region.sizes[i];
  }
  for (size_t d = 0; d < spans.size(); ++d)
    if (spans[d].start + (spans[d].count - 1) * spans[d].step >= whole.sizes[d])
      return std::nullopt;
  return spans;
}

// What a source is for every element of the base.
class WholeSource {
 public:
  // `written`: what stands for a value that a partial write made.
  WholeSource(GraphBuilder& builder, const TensorInfo& whole, const Layout& region,
              c10::IntArrayRef input_offsets, const std::unordered_map<Value*, Value*>& written)
      : builder_(builder),
        whole_(whole),
        region_(region),
        input_offsets_(input_offsets),
        written_(written) {}

  // Null where it is not known. Numbers stay numbers.
  Value* of(Value* value) {
    if (constant_number(value)) return value;
    const auto [found, added] = known_.emplace(value, nullptr);
    if (added) {
      Value* const made = make(value);
      known_[value] = made;
      return made;
    }
    return found->second;
  }
  int cost() const { return cost_; }

 private:
  Value* make(Value* value) {
    if (!has_complete_type(value)) return nullptr;
    Node* const node = value->node();
    const TensorInfo info = info_of(value);
    if (node->kind() == c10::aten::full) {
      const auto number = constant_number(node->input(1));
      return number ? builder_.number(*number, info.dtype) : nullptr;
    }
    if (node->kind() == c10::aten::as_strided) return base_of(node);
    if (c10::IntArrayRef(info.sizes) != c10::IntArrayRef(region_.sizes)) return nullptr;
    return computed(node, info);
  }

  // Of a view of the same places of another array.
  Value* base_of(Node* view) const {
    Value* const base = view->input(0);
    auto layout = layout_at(view, 1);
    if (!layout || !info_of(base).same_layout(whole_)) return nullptr;
    if (base->node()->kind() == c10::prim::Param) {
      if (input_offsets_.empty()) return nullptr;
      layout->offset -= input_offsets_[base->offset()];
    }
    if (*layout != region_) return nullptr;
    const auto found = written_.find(base);
    return found == written_.end() ? base : found->second;
  }

  Value* computed(Node* node, const TensorInfo& info) {
    const size_t operands = operand_count(*node);
    if (operands == 0 || !node->kind().is_aten() || node->hasAttribute(kLibraryAttribute))
      return nullptr;
    const primitive::Op op = find_core_operator(operator_name(node))->op;
    if (!c10::isFloatingType(info.dtype) && may_raise(op)) return nullptr;
    cost_ += primitive::cost_of(op);
    std::vector<Value*> inputs = node->inputs().vec();
    for (size_t i = 0; i < operands; ++i)
      if ((inputs[i] = of(inputs[i])) == nullptr) return nullptr;
    TensorInfo type = whole_;
    type.dtype = info.dtype;
    return builder_.call_like(node, inputs, type);
  }

  static bool may_raise(primitive::Op op) {
    using primitive::Op;
    return op == Op::kDiv || op == Op::kDivTrunc || op == Op::kDivFloor || op == Op::kRemainder ||
           op == Op::kFmod || op == Op::kPow;
  }

  GraphBuilder& builder_;
  const TensorInfo& whole_;
  const Layout& region_;
  const c10::IntArrayRef input_offsets_;
  const std::unordered_map<Value*, Value*>& written_;
  std::unordered_map<Value*, Value*> known_;
  int cost_ = 0;
};

bool is_made_by_kernel(const Value* value) {
  const Node& node = *value->node();
  return !node.hasAttribute(kLibraryAttribute) &&
         (node.kind() == c10::aten::clone || is_pointwise(node));
}

// Nothing reads the value but the write on top of it, and what that writes.
bool is_read_by_next_write(const Value* value, const Node* next) {
  const auto region = layout_at(next, 2);
  return std::ranges::all_of(value->uses(), [&](const Use& use) {
    if (use.user == next) return use.offset == 0;
    return use.user->kind() == c10::aten::as_strided && layout_at(use.user, 1) == region;
  });
}

// Parts of it are not read for themselves, nor written further.
bool is_read_as_a_whole(const Value* value) {
  return std::ranges::none_of(value->uses(), [&](const Use& use) {
    return use.user->kind() == c10::aten::as_strided ||
           (use.user->kind() == c10::aten::as_strided_scatter && use.offset == 0);
  });
}

// Steps that an index is compared with by its bits.
bool is_power_of_two(int64_t step) {
  return std::has_single_bit(uint64_t(step));
}

// For every element of the whole, so that the kernel that makes the choice looks.
Term is_in_span(GraphBuilder& builder, const Span& span, const TensorInfo& whole, size_t dim) {
  const int64_t size = whole.sizes[dim];
  std::vector<int64_t> strides(whole.sizes.size(), 0);
  strides[dim] = 1;
  const Term index{&builder, builder.view(builder.iota(size), whole.sizes, strides)};
  // By `ge` and `lt`, which are one comparison for all lanes.
  std::optional<Term> inside;
  const auto also = [&](Term condition) {
    inside = inside ? logical_and(*inside, condition) : condition;
  };
  if (span.start > 0) also(compare("ge", index, span.start));
  const int64_t last = span.start + (span.count - 1) * span.step;
  if (last + span.step < size) also(compare("lt", index, last + 1));
  if (span.step > 1) {
    const Term from_start = span.start % span.step == 0 ? index : index - span.start;
    const Term bits = binary("bitwise_and", "Tensor", from_start, index.number(span.step - 1));
    also(compare("eq", bits, 0));
  }
  return *inside;
}

class ChoiceMaker {
 public:
  ChoiceMaker(GraphBuilder& builder, const TensorInfo& whole, c10::IntArrayRef input_offsets)
      : builder_(builder), whole_(whole), input_offsets_(input_offsets) {}

  // Of a chain of writes, the first of them first.
  Value* of(Node* write, int depth = 0) {
    Value* base = write->input(0);
    const auto region = written_region(write->output());
    if (!region || region->numel() == 0 || depth == kMostChoices ||
        write->hasAttribute(kLibraryAttribute) || !info_of(base).same_layout(whole_))
      return nullptr;
    if (base->node()->kind() == c10::aten::as_strided_scatter) {
      if (!is_read_by_next_write(base, write)) return nullptr;
      Value* const made = of(base->node(), depth + 1);
      if (made == nullptr) return nullptr;
      written_[base] = made;
      base = made;
    } else if (!is_made_by_kernel(base)) {
      return nullptr;
    }
    return choice(base, write->input(1), *region);
  }

 private:
  Value* choice(Value* base, Value* source, const Layout& region) {
    const auto spans = spans_of(whole_, region);
    if (!spans || !std::ranges::all_of(*spans, is_power_of_two, &Span::step)) return nullptr;
    WholeSource whole_source(builder_, whole_, region, input_offsets_, written_);
    Value* const made = whole_source.of(source);
    const bool half = 2 * region.numel() >= whole_.elements();
    if (made == nullptr || whole_source.cost() > (half ? kMostCostOfHalf : kMostCostOfFew))
      return nullptr;
    std::optional<Term> written;
    for (size_t d = 0; d < spans->size(); ++d) {
      if ((*spans)[d].is_whole(whole_.sizes[d])) continue;
      const Term inside = is_in_span(builder_, (*spans)[d], whole_, d);
      written = written ? logical_and(*written, inside) : inside;
    }
    if (!written) return nullptr;
    const Term before{&builder_, base}, after{&builder_, made};
    const Term chosen = where(*written, after.to(whole_.dtype), before);
    chosen.value->setType(whole_.type());
    return chosen.value;
  }

  GraphBuilder& builder_;
  const TensorInfo& whole_;
  const c10::IntArrayRef input_offsets_;
  std::unordered_map<Value*, Value*> written_;
};

}  // namespace

Value* choice_of_write(GraphBuilder& builder, Node* write, c10::IntArrayRef input_offsets) {
  if (!is_read_as_a_whole(write->output())) return nullptr;
  const TensorInfo whole = info_of(write->output());
  return ChoiceMaker(builder, whole, input_offsets).of(write);
}

}  // namespace torch_lazy
