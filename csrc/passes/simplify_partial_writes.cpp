#include "passes/simplify_partial_writes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "passes/view_steps.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// A view looks past so many writes: one that reads each of n parts after n writes takes n * n / 2.
constexpr int kMostWritesPassed = 256;

}  // namespace

std::optional<Layout> layout_at(const Node* node, size_t first) {
  const auto sizes = constant_value(node->input(first));
  const auto strides = constant_value(node->input(first + 1));
  const auto offset = constant_value(node->input(first + 2));
  if (!sizes || !strides || !offset || !sizes->isIntList() || !strides->isIntList() ||
      !offset->isInt())
    return std::nullopt;
  Layout layout;
  for (const int64_t size : sizes->toIntVector()) layout.sizes.push_back(size);
  for (const int64_t stride : strides->toIntVector()) layout.strides.push_back(stride);
  layout.offset = offset->toInt();
  return layout;
}

std::optional<Layout> layout_of_view(const Node* view, c10::IntArrayRef input_offsets) {
  auto layout = layout_at(view, 1);
  const Value* const base = view->input(0);
  if (!layout || base->node()->kind() != c10::prim::Param) return layout;
  if (base->offset() >= input_offsets.size()) return std::nullopt;
  layout->offset -= input_offsets[base->offset()];
  return layout;
}

std::optional<Layout> written_region(const Value* value, c10::IntArrayRef input_offsets) {
  const Node* const node = value->node();
  if (node->kind() != c10::aten::as_strided_scatter) return std::nullopt;
  const Value* const base = node->input(0);
  const TensorInfo source = info_of(node->input(1));
  auto region = layout_at(node, 2);
  if (base->node()->kind() == c10::aten::as_strided || source.dtype != info_of(value).dtype ||
      !region || c10::IntArrayRef(source.sizes) != region->sizes)
    return std::nullopt;
  if (base->node()->kind() != c10::prim::Param) return region;
  if (base->offset() >= input_offsets.size() || !info_of(base).same_layout(info_of(value)))
    return std::nullopt;
  region->offset -= input_offsets[base->offset()];
  return region;
}

std::optional<Part> slice_of(const TensorInfo& whole, const Layout& region,
                             std::optional<size_t>& dim) {
  const auto begin = begin_of_box(region, whole.sizes, whole.strides);
  if (!begin) return std::nullopt;
  for (size_t d = 0; d < whole.sizes.size(); ++d) {
    if (region.sizes[d] == whole.sizes[d]) continue;
    if (!dim) dim = d;
    if (*dim != d) return std::nullopt;
  }
  if (!dim) return std::nullopt;
  return Part{.begin = (*begin)[*dim], .end = (*begin)[*dim] + region.sizes[*dim]};
}

namespace {

// Of what lies in `region`: what a view sees that reads nothing else. Null where it may.
Value* view_of_region(GraphBuilder& builder, Value* source, const Layout& region,
                      const Layout& read) {
  if (region == read) return source;
  if (!contains(region, read)) return nullptr;
  const TensorInfo info = info_of(source);
  Layout place{region.sizes, {info.strides.begin(), info.strides.end()}, 0};
  std::optional<Layout> view;
  if (place.strides == region.strides) {  // also where a dimension of the view runs along several
    view = read;
    view->offset -= region.offset;
  } else {
    view = moved(read, region, place);
  }
  return view ? builder.view(source, view->sizes, view->strides, view->offset) : nullptr;
}

// What a view of a cat sees that reads one part of it. Null for others.
Value* view_of_part(GraphBuilder& builder, const Value* cat, const Layout& read) {
  const TensorInfo whole = info_of(cat);
  const auto constant = constant_value(cat->node()->input(1));
  if (!constant || !constant->isInt()) return nullptr;
  const int64_t rank = int64_t(whole.sizes.size());
  const auto dim = size_t(constant->toInt() < 0 ? constant->toInt() + rank : constant->toInt());
  Layout region{{}, {whole.strides.begin(), whole.strides.end()}, 0};
  for (Value* part : cat->node()->input(0)->node()->inputs()) {
    const TensorInfo info = info_of(part);
    if (info.sizes.size() != whole.sizes.size()) return nullptr;  // ATen's empty 1-D tensors
    region.sizes.assign(info.sizes.begin(), info.sizes.end());
    if (info.dtype == whole.dtype && !disjoint(region, read))
      return view_of_region(builder, part, region, read);
    region.offset += info.sizes[dim] * whole.strides[dim];
  }
  return nullptr;
}

bool is_written_further(const Value* value) {
  return std::any_of(value->uses().begin(), value->uses().end(), [](const torch::jit::Use& use) {
    return use.offset == 0 && use.user->kind() == c10::aten::as_strided_scatter;
  });
}

}  // namespace

Value* read_past_writes(GraphBuilder& builder, Node* view, c10::IntArrayRef input_offsets) {
  const auto read = layout_at(view, 1);
  if (!read) return nullptr;
  Value* value = view->input(0);
  for (int passed = 0; const auto written = written_region(value, input_offsets); ++passed) {
    if (passed == kMostWritesPassed) return nullptr;
    // What other writes have left of it is read where the last one has been: of the value between,
    // which is written to again, a copy would have to be kept.
    if (!disjoint(*written, *read))
      return view_of_region(builder, value->node()->input(1), *written, *read);
    value = value->node()->input(0);
  }
  if (value->node()->kind() == c10::aten::cat)
    if (Value* part = view_of_part(builder, value, *read)) return part;
  if (value == view->input(0)) return nullptr;
  return builder.view(value, read->sizes, read->strides, read->offset);
}

Value* cat_of_writes(GraphBuilder& builder, Node* write) {
  if (is_written_further(write->output())) return nullptr;
  const TensorInfo whole = info_of(write->output());
  std::optional<size_t> dim;
  std::vector<Part> parts;
  int64_t left = 1;
  for (Value* value = write->output(); left > 0; value = value->node()->input(0)) {
    const auto region = written_region(value);
    auto part = region ? slice_of(whole, *region, dim) : std::nullopt;
    if (!part) return nullptr;
    part->source = value->node()->input(1);
    left = (parts.empty() ? whole.sizes[*dim] : left) - (part->end - part->begin);
    parts.push_back(*part);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  int64_t end = 0;
  std::vector<Value*> sources;
  for (const Part& part : parts) {
    if (part.begin != end) return nullptr;
    end = part.end;
    sources.push_back(part.source);
  }
  return end == whole.sizes[*dim] ? builder.cat(sources, int64_t(*dim), whole) : nullptr;
}

Value* without_covered_write(GraphBuilder& builder, Node* write, c10::IntArrayRef input_offsets) {
  const auto region = written_region(write->output(), input_offsets);
  Value* base = write->input(0);
  for (int passed = 0; region && passed < kMostWritesPassed; ++passed) {
    const auto covered = written_region(base, input_offsets);
    if (!covered || !contains(*region, *covered)) break;
    base = base->node()->input(0);
  }
  if (base == write->input(0)) return nullptr;
  std::vector<Value*> inputs = write->inputs().vec();
  inputs[0] = base;
  if (base->node()->kind() == c10::prim::Param)
    inputs[4] = builder.integer(region->offset + input_offsets[base->offset()]);
  return builder.call_like(write, inputs, info_of(write->output()));
}

}  // namespace torch_lazy
