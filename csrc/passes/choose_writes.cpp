#include "passes/choose_writes.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <vector>

#include "passes/dead_code.h"
#include "passes/decompose_term.h"
#include "passes/fusable.h"
#include "passes/pure_nodes.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_partial_writes.h"
#include "passes/view_steps.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// What all choices of a chain may cost an element, in the units of primitive::cost_of, where at
// least half of the elements are written by each of them, and else.
constexpr int kMostCostOfHalf = 40, kMostCostOfFew = 8;
// Of an element of an array that nothing but the source reads, where arrays are too large to stay
// in the first cache: more than a write of few elements is worth.
constexpr int kLoadCost = 10;
constexpr int64_t kFirstCacheBytes = 32 << 10;
// Writes one above the other: each is a choice for every element. A buffer that is filled row by
// row is written to.
constexpr int kMostChoices = 4;

// The elements start, start + step, ... of a dimension of the base's.
struct Span {
  int64_t start = 0, step = 1, count = 1;
  bool is_whole(int64_t size) const { return start == 0 && step == 1 && count == size; }
};

// By the dimensions of the dense `whole`. Nullopt where the region is not a span along each.
std::optional<std::vector<Span>> spans_of(const TensorInfo& whole, const Layout& region) {
  const auto steps = steps_of(region, whole.sizes, whole.strides);
  if (!steps) return std::nullopt;
  std::vector<Span> spans;
  for (const int64_t begin : steps->begin) spans.push_back({.start = begin});
  for (size_t i = 0; i < region.sizes.size(); ++i) {
    if (region.sizes[i] == 1) continue;
    const auto [dim, by] = steps->along[i];
    if (by == 0 || spans[dim].count != 1) return std::nullopt;
    spans[dim].step = by;
    spans[dim].count = region.sizes[i];
  }
  return spans;
}

// What a source is for every element of the base.
class WholeSource {
 public:
  // `base`: what is written to, once choices were made of the writes before. `written`: what stands
  // for a value that a partial write made. `budget`: what may be computed for an element.
  WholeSource(GraphBuilder& builder, const Value* base, const Layout& region,
              c10::IntArrayRef input_offsets, const std::unordered_map<Value*, Value*>& written,
              int budget)
      : builder_(builder),
        base_(base),
        whole_(info_of(base)),
        region_(region),
        input_offsets_(input_offsets),
        written_(written),
        budget_(budget) {}

  // Null where it is not known, or costs more than the budget. Numbers stay numbers.
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
  // What is left.
  int budget() const { return budget_; }

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
  Value* base_of(Node* view) {
    Value* const array = view->input(0);
    const TensorInfo info = info_of(array);
    if (!info.same_layout(whole_) || !primitive::has_type(info.dtype) ||
        layout_of_view(view, input_offsets_) != region_)
      return nullptr;
    const auto found = written_.find(array);
    Value* const whole = found == written_.end() ? array : found->second;
    return is_at_hand(whole, info) || pay(kLoadCost) ? whole : nullptr;
  }

  // What the kernel reads or makes anyway, or has near.
  bool is_at_hand(const Value* array, const TensorInfo& info) const {
    if (array == base_ ||
        info.elements() * int64_t(c10::elementSize(info.dtype)) <= kFirstCacheBytes)
      return true;
    const auto operands = base_->node()->inputs();
    return std::find(operands.begin(), operands.end(), array) != operands.end();
  }

  Value* computed(Node* node, const TensorInfo& info) {
    if (!is_pointwise(*node) || !is_for_kernels(*node)) return nullptr;
    if (!pay(primitive::cost_of(fusable_operator(node)->op))) return nullptr;
    std::vector<Value*> inputs = node->inputs().vec();
    for (size_t i = 0; i < operand_count(*node); ++i)
      if ((inputs[i] = of(inputs[i])) == nullptr) return nullptr;
    TensorInfo type = whole_;
    type.dtype = info.dtype;
    builder_.stand_for(node);
    return builder_.call_like(node, inputs, type);
  }

  bool pay(int cost) { return (budget_ -= cost) >= 0; }

  GraphBuilder& builder_;
  const Value* const base_;
  const TensorInfo whole_;
  const Layout& region_;
  const c10::IntArrayRef input_offsets_;
  const std::unordered_map<Value*, Value*>& written_;
  std::unordered_map<Value*, Value*> known_;
  int budget_;
};

bool is_read_in_kernels(const Node& node) {
  return is_for_kernels(node) && fusable_operator(&node)->kind != CoreKind::kGather;
}

// A kernel makes it, and nothing but kernels and results of the window read it: where a library
// call or a gather needs it in memory, writing to a part is cheaper than making all of it anew.
bool is_made_for_kernels(const Value* value) {
  const Node& made = *value->node();
  if (!is_for_kernels(made) || !(made.kind() == c10::aten::clone || is_pointwise(made)))
    return false;
  const auto is_fine = [](const Node& user) {
    return user.kind() == c10::prim::Return || user.kind() == c10::aten::copy_ ||
           user.kind() == c10::aten::as_strided_scatter || is_read_in_kernels(user);
  };
  return std::ranges::all_of(value->uses(), [&](const Use& use) {
    if (use.user->kind() != c10::aten::as_strided) return is_fine(*use.user);
    return std::ranges::all_of(use.user->output()->uses(),
                               [&](const Use& of_view) { return is_fine(*of_view.user); });
  });
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
    half_ &= 2 * region->numel() >= whole_.elements();
    if (base->node()->kind() == c10::aten::as_strided_scatter) {
      if (!is_read_by_next_write(base, write)) return nullptr;
      Value* const made = of(base->node(), depth + 1);
      if (made == nullptr) return nullptr;
      written_[base] = made;
      base = made;
    } else if (is_made_for_kernels(base)) {
      budget_ = half_ ? kMostCostOfHalf : kMostCostOfFew;
    } else {
      return nullptr;
    }
    return choice(base, write, *region);
  }

 private:
  Value* choice(Value* base, Node* write, const Layout& region) {
    const auto spans = spans_of(whole_, region);
    if (!spans || !std::ranges::all_of(*spans, is_power_of_two, &Span::step)) return nullptr;
    WholeSource whole_source(builder_, base, region, input_offsets_, written_, budget_);
    Value* const made = whole_source.of(write->input(1));
    if (made == nullptr) return nullptr;
    budget_ = whole_source.budget();
    builder_.stand_for(write);
    std::optional<Term> written;
    for (size_t d = 0; d < spans->size(); ++d) {
      if ((*spans)[d].is_whole(whole_.sizes[d])) continue;
      const Term inside = is_in_span(builder_, (*spans)[d], whole_, d);
      written = written ? logical_and(*written, inside) : inside;
    }
    if (!written) return nullptr;
    const Term before{&builder_, base}, after{&builder_, made};
    const Term chosen = where(*written, after, before);
    chosen.value->setType(whole_.type());
    return chosen.value;
  }

  GraphBuilder& builder_;
  const TensorInfo& whole_;
  const c10::IntArrayRef input_offsets_;
  std::unordered_map<Value*, Value*> written_;
  bool half_ = true;  // each write so far is to at least half of the elements
  int budget_ = 0;    // of the choices still to be made
};

Value* choice_of(GraphBuilder& builder, Node* write, c10::IntArrayRef input_offsets) {
  if (!is_read_as_a_whole(write->output())) return nullptr;
  const TensorInfo whole = info_of(write->output());
  return ChoiceMaker(builder, whole, input_offsets).of(write);
}

}  // namespace

std::shared_ptr<Graph> choose_writes(std::shared_ptr<Graph> graph, c10::IntArrayRef input_offsets) {
  std::vector<Node*> writes;
  for (Node* node : graph->nodes())
    if (node->kind() == c10::aten::as_strided_scatter) writes.push_back(node);
  if (writes.empty()) return graph;
  GraphBuilder builder(*graph, input_offsets);
  for (Node* write : writes) {
    builder.insert_before(write);
    if (Value* const choice = choice_of(builder, write, input_offsets)) {
      move_name(write->output(), choice);
      write->output()->replaceAllUsesWith(choice);
    } else {
      destroy_unused(builder.inserted());
    }
  }
  builder.order_constants();
  remove_dead_code(*graph, is_pure);
  return graph;
}

}  // namespace torch_lazy
