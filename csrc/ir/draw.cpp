#include "ir/draw.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <sstream>
#include <unordered_map>

#include "ir/node_operator.h"
#include "ir/print.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

constexpr const char* kInputColor = "#dbeafe";
constexpr const char* kOutputColor = "#dcfce7";
constexpr const char* kOperatorColor = "#ffffff";
constexpr const char* kWriteColor = "#fef3c7";
constexpr const char* kViewColor = "#f3f4f6";
constexpr size_t kLongestConstant = 32;

constexpr const char* kHeader = R"(digraph window {
  graph [bgcolor="transparent", nodesep=0.3, ranksep=0.4, fontname="Helvetica"];
  node [shape=box, style="rounded,filled", color="#6b7280", fillcolor="#ffffff",
        fontname="Helvetica", fontsize=12, margin="0.12,0.06", height=0.3];
  edge [color="#6b7280", fontcolor="#374151", fontname="Helvetica", fontsize=9, arrowsize=0.6];
)";

// For HTML-like labels; what is in quotes escapes the same characters.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string brackets(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

bool contiguous(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

// "Float [2, 3]", with strides where they are not those of a contiguous tensor.
std::string shape_text(const Value& value) {
  const auto type = value.type()->cast<c10::TensorType>();
  if (!type) return value.type()->annotation_str();
  if (!type->isComplete()) return "undefined";
  const auto sizes = *type->sizes().concrete_sizes(), strides = *type->strides().concrete_sizes();
  std::string text = fmt::format("{} {}", c10::toString(*type->scalarType()), brackets(sizes));
  if (!contiguous(sizes, strides)) text += fmt::format(" strides {}", brackets(strides));
  return text;
}

std::string constant_text(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1)
    return constant_text(value.toTensor().item());
  std::ostringstream out;
  if (value.isTensor())
    out << describe(value.toTensor());
  else
    out << value;
  std::string text = out.str();
  if (text.size() > kLongestConstant) text = text.substr(0, kLongestConstant - 1) + "…";
  return text;
}

class Picture {
 public:
  explicit Picture(const Graph& graph) {
    out_ += kHeader;
    size_t index = 0;
    for (const Value* input : graph.inputs()) {
      const std::string id = fmt::format("in{}", index++);
      ids_[input->node()] = "";  // inputs share a node: they are found by value
      input_ids_[input] = id;
      box(id, row(input->debugName(), true) + row(shape_text(*input), false), kInputColor);
    }
    index = 0;
    for (const Node* node : graph.nodes())
      if (drawn(*node)) ids_[node] = fmt::format("op{}", index++);
    for (const Node* node : graph.nodes())
      if (drawn(*node)) add_operator(*node);
    index = 0;
    for (const Value* output : graph.outputs()) {
      const std::string id = fmt::format("out{}", index);
      box(id, row(fmt::format("output {}", index++), true) + row(shape_text(*output), false),
          kOutputColor);
      edge(*output, id, "");
    }
    out_ += "}\n";
  }

  std::string take() { return std::move(out_); }

 private:
  // Constants are written in the operator's box, lists are drawn as edges of their elements.
  static bool drawn(const Node& node) {
    return !node.kind().is_prim() && node.kind() != c10::aten::ScalarImplicit;
  }

  static std::string row(const std::string& text, bool title) {
    return title
               ? fmt::format("<TR><TD><B>{}</B></TD></TR>", escape(text))
               : fmt::format("<TR><TD><FONT POINT-SIZE=\"9\" COLOR=\"#6b7280\">{}</FONT></TD></TR>",
                             escape(text));
  }

  void box(const std::string& id, const std::string& rows, const char* color) {
    out_ += fmt::format(
        "  {} [fillcolor=\"{}\", label=<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" "
        "CELLPADDING=\"1\">{}</TABLE>>];\n",
        id, color, rows);
  }

  void add_operator(const Node& node) {
    const auto handle = find_operator(&node);
    const std::string& id = ids_.at(&node);
    std::string arguments;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const c10::Argument* argument = handle ? &handle->schema().arguments().at(i) : nullptr;
      const std::string name = argument ? argument->name() : "";
      add_argument(*node.input(i), id, name, argument, arguments);
    }
    std::string rows = row(node.kind().toUnqualString(), true);
    const std::string line = recorded_at(node);
    if (!line.empty()) rows += row(base_name(line), false);
    if (!arguments.empty()) rows += row(arguments, false);
    box(id, rows, color_of(handle ? &handle->schema() : nullptr));
  }

  void add_argument(const Value& value, const std::string& id, const std::string& name,
                    const c10::Argument* declared, std::string& arguments) {
    const Node& maker = *value.node();
    if (maker.kind() == c10::prim::ListConstruct) {
      for (const Value* element : maker.inputs())
        add_argument(*element, id, name, nullptr, arguments);
      return;
    }
    if (maker.kind() == c10::aten::ScalarImplicit)
      return add_argument(*maker.input(), id, name, declared, arguments);
    if (maker.kind() == c10::prim::AutogradZero) return;
    if (maker.kind() != c10::prim::Constant) return edge(value, id, name);
    const auto constant = torch::jit::toIValue(&value);
    if (!constant || constant->isNone()) return;
    // What has its default value says nothing.
    if (declared && declared->default_value() && !constant->isTensor() &&
        constant->type()->kind() == declared->default_value()->type()->kind() &&
        *constant == *declared->default_value())
      return;
    if (!arguments.empty()) arguments += ", ";
    arguments += fmt::format("{}={}", name, constant_text(*constant));
  }

  void edge(const Value& value, const std::string& to, const std::string& argument) {
    const Node* maker = value.node();
    if (maker->kind() == c10::prim::ListUnpack) maker = maker->input()->node();
    const auto input = input_ids_.find(&value);
    const std::string from = input != input_ids_.end() ? input->second : ids_.at(maker);
    out_ += fmt::format("  {} -> {} [label=\" {}\", tooltip=\"%{} {}\"];\n", from, to,
                        escape(shape_text(value)), escape(value.debugName()), escape(argument));
  }

  static const char* color_of(const c10::FunctionSchema* schema) {
    if (!schema) return kOperatorColor;
    if (schema->is_mutable()) return kWriteColor;
    for (const c10::Argument& value : schema->returns())
      if (value.alias_info()) return kViewColor;
    return kOperatorColor;
  }

  std::string out_;
  std::unordered_map<const Node*, std::string> ids_;
  std::unordered_map<const Value*, std::string> input_ids_;
};

}  // namespace

std::string draw_graph(const Graph& graph) {
  return Picture(graph).take();
}

}  // namespace torch_lazy
