// A backend with a compiler of graphs: it runs a part node by node on the CPU, by the dispatcher.
// It refuses the operators that VENDOR_REFUSES names, or those on which a random choice by seed
// falls
// ("aten::sin,aten::exp" or "seed 7"), and parts of more nodes than VENDOR_MOST_NODES.
#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <torch_lazy/backend/backend_library.h>
#include <torch_lazy/backend/operators/graph_backend.h>
#include <torch_lazy/ir/node_operator.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using namespace torch_lazy;
using torch::jit::Node;
using torch::jit::Value;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

bool supports(const OperatorCall& call) {
  const std::string refuses = variable("VENDOR_REFUSES");
  if (refuses.rfind("seed ", 0) == 0) return std::hash<std::string>()(refuses + call.name) % 3 != 0;
  return ("," + refuses + ",").find("," + call.name + ",") == std::string::npos;
}

at::Tensor tensor_at(void* address, const TensorDescription& description) {
  return at::from_blob(address, description.sizes, description.strides,
                       at::TensorOptions(description.dtype));
}

// What runs a graph: values by name in the graph, each freed with the run.
class Program {
 public:
  explicit Program(const SubgraphCall& call) : call_(call) {}

  void run(c10::ArrayRef<void*> addresses) const {
    std::unordered_map<const Value*, c10::IValue> values;
    for (size_t i = 0; i < call_.inputs.size(); ++i)
      values[call_.graph->inputs()[i]] = tensor_at(addresses[i], call_.inputs[i]);
    for (const Node* node : call_.graph->nodes()) run(*node, values);
    for (size_t i = 0; i < call_.results.size(); ++i)
      tensor_at(addresses[call_.inputs.size() + i], call_.results[i])
          .copy_(values.at(call_.graph->outputs()[i]).toTensor());
  }

 private:
  using Values = std::unordered_map<const Value*, c10::IValue>;

  static void run(const Node& node, Values& values) {
    torch::jit::Stack stack;
    for (const Value* input : node.inputs()) stack.push_back(values.at(input));
    if (const auto op = find_operator(&node))
      op->callBoxed(stack);
    else
      run_primitive(node, stack);
    for (size_t i = 0; i < node.outputs().size(); ++i)
      values[node.outputs()[i]] = std::move(stack.at(i));
  }

  // Nodes beside operators are constants, lists and their elements.
  static void run_primitive(const Node& node, torch::jit::Stack& stack) {
    if (node.kind() == c10::prim::ListConstruct) {
      c10::impl::GenericList list(
          node.output()->type()->expectRef<c10::ListType>().getElementType());
      for (c10::IValue& element : stack) list.push_back(std::move(element));
      stack = {std::move(list)};
    } else if (node.kind() == c10::prim::ListUnpack) {
      stack = stack.at(0).toListRef().vec();
    } else {
      TORCH_CHECK(node.kind() == c10::prim::Constant, "no such node: ", node);
      stack = {*torch::jit::toIValue(node.output())};
    }
  }

  const SubgraphCall call_;
};

DeviceCommand compile_part(const SubgraphCall& call) {
  const std::string most = variable("VENDOR_MOST_NODES");
  size_t nodes = 0;
  for (const Node* node : call.graph->nodes()) nodes += find_operator(node) ? 1 : 0;
  if (!most.empty() && nodes > std::stoul(most)) return {};
  return [program = Program(call)](c10::ArrayRef<void*> addresses) { program.run(addresses); };
}

struct Compiling final : GraphBackend {
  Compiling() : GraphBackend(at::kCPU, "Graphs 1", {supports, compile_part}) {}
};

}  // namespace

TORCH_LAZY_BACKEND("graphs", Compiling);
