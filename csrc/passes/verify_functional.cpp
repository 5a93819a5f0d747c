#include "passes/verify_functional.h"

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>
#include <unordered_set>

#include "ir/node_operator.h"
#include "ir/print.h"
#include "ir/verify_graph.h"
#include "ops/effects.h"
#include "passes/graph_builder.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

bool is_input(const Value* value) {
  return value->node()->kind() == c10::prim::Param;
}

Layout layout_of(const Value* value) {
  const TensorInfo info = info_of(value);
  Layout layout;
  layout.sizes.assign(info.sizes.begin(), info.sizes.end());
  layout.strides.assign(info.strides.begin(), info.strides.end());
  return layout;
}

class Verifier {
 public:
  Verifier(const Graph& graph, const std::vector<GraphInput>& inputs)
      : graph_(graph), inputs_(inputs) {}

  void verify() {
    verify_graph(graph_);
    TORCH_CHECK(inputs_.size() == graph_.inputs().size(), "the graph takes ",
                graph_.inputs().size(), " inputs, ", inputs_.size(), " are described");
    for (const Node* node : graph_.nodes()) verify(*node);
    std::unordered_set<const Value*> returned;
    for (const Value* output : graph_.outputs()) {
      TORCH_CHECK(is_made(output), "output %", output->debugName(), " is no node's own memory");
      TORCH_CHECK(returned.insert(output).second, "%", output->debugName(), " is returned twice");
    }
  }

 private:
  void verify(const Node& node) {
    if (node.kind().is_prim() || node.kind() == c10::aten::ScalarImplicit) return;
    check(node, node.hasAttribute(kOriginAttribute), "does not say what it stands for");
    if (node.kind() == c10::aten::copy_) return verify_mutation(node);
    check(node, !writes_began_, "follows a write to an input");
    const Effects& effects = effects_of(operator_of(&node));
    check(node, effects.known, "may do anything");
    check(node, !effects.random, "draws random numbers");
    check(node, !effects.writes_any(), "writes an argument");
    if (node.kind() == c10::aten::as_strided) return verify_view(node);
    for (const ReturnEffect& effect : effects.returns)
      check(node, effect.kind == ReturnKind::Fresh || effect.kind == ReturnKind::NotTensor,
            "may return a view");
    if (node.kind() == c10::aten::as_strided_scatter) verify_partial_write(node);
  }

  static void check(const Node& node, bool holds, const std::string& what) {
    if (holds) return;
    const std::string line = recorded_at(node);
    const std::string name =
        node.outputs().empty() ? "" : "%" + node.output(0)->debugName() + " = ";
    TORCH_CHECK(false, name, operator_name(&node), line.empty() ? "" : " (" + line + ")", " ",
                what);
  }

  // The view that the constants `first`, `first + 1` and `first + 2` describe.
  static Layout described(const Node& node, size_t first) {
    const auto sizes = constant_value(node.input(first));
    const auto strides = constant_value(node.input(first + 1));
    const auto offset = constant_value(node.input(first + 2));
    check(node, sizes && strides && offset && offset->isInt(),
          "has sizes, strides or an offset that are no constants");
    Layout layout;
    for (const int64_t size : sizes->toIntVector()) layout.sizes.push_back(size);
    for (const int64_t stride : strides->toIntVector()) layout.strides.push_back(stride);
    layout.offset = offset->toInt();
    check(node, layout.sizes.size() == layout.strides.size(), "has more sizes than strides");
    return layout;
  }

  // What offsets into a value may reach: its own memory, or an input's storage.
  int64_t elements(const Value* base) const {
    if (is_view(base)) return elements(base->node()->input(0));
    if (!is_input(base)) return layout_of(base).end();
    return inputs_[base->offset()].storage_bytes / int64_t(c10::elementSize(info_of(base).dtype));
  }

  void check_bounds(const Node& node, const Layout& layout) const {
    if (layout.numel() == 0) return;
    check(node, layout.offset >= 0 && layout.end() <= elements(node.input(0)),
          "leaves the memory of %" + node.input(0)->debugName());
  }

  void verify_view(const Node& node) const {
    check(node, !is_view(node.input(0)), "is a view of a view");
    Layout layout = described(node, 1);
    check_bounds(node, layout);
    layout.offset = 0;
    check(node, layout == layout_of(node.output()), "has another type than it describes");
    check(node, info_of(node.input(0)).dtype == info_of(node.output()).dtype,
          "has another dtype than its base");
  }

  void verify_partial_write(const Node& node) const {
    const Value* base = node.input(0);
    // The one view that may be written into is a flat part of an input.
    check(node, !is_view(base) || is_input(base->node()->input(0)), "writes into a view");
    const Layout layout = described(node, 2);
    check_bounds(node, layout);
    check(node, layout.sizes == layout_of(node.input(1)).sizes, "has a source of other sizes");
    check(node, has_distinct_elements(layout), "writes elements twice");
    check(node, layout_of(base) == layout_of(node.output()), "has another type than its base");
    const c10::ScalarType dtype = info_of(node.output()).dtype;
    check(node, info_of(base).dtype == dtype && info_of(node.input(1)).dtype == dtype,
          "mixes dtypes");
  }

  void verify_mutation(const Node& node) {
    writes_began_ = true;
    const Value *to = node.input(0), *from = node.input(1);
    check(node, is_input(to) || (is_view(to) && is_input(to->node()->input(0))),
          "writes what is no input");
    check(node, is_made(from), "reads what a node did not make in memory of its own");
    check(node,
          info_of(to).dtype == info_of(from).dtype && info_of(to).sizes == info_of(from).sizes,
          "writes %" + from->debugName() + " with another dtype or other sizes");
    check(node, !node.hasUses(), "is read");
  }

  const Graph& graph_;
  const std::vector<GraphInput>& inputs_;
  bool writes_began_ = false;
};

}  // namespace

void verify_functional(const Graph& graph, const std::vector<GraphInput>& inputs) {
  Verifier(graph, inputs).verify();
}

}  // namespace torch_lazy
