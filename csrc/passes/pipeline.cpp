#include "passes/pipeline.h"

#include <algorithm>

#include "base/config.h"
#include "base/debug.h"
#include "base/pass_times.h"
#include "ir/print.h"
#include "ir/verify_graph.h"
#include "passes/add_pieces.h"
#include "passes/choose_joins.h"
#include "passes/choose_writes.h"
#include "passes/decompose.h"
#include "passes/functionalize.h"
#include "passes/graph_builder.h"
#include "passes/move_biases.h"
#include "passes/simplify.h"
#include "passes/verify_functional.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;

void print_pass(const char* name, const Graph& graph) {
  if (config().debug >= kDebugPasses) debug_print(std::string(name) + "\n" + print_graph(graph));
}

std::string message_of(const std::exception& error) {
  const auto* const raised = dynamic_cast<const c10::Error*>(&error);
  return raised ? raised->what_without_backtrace() : error.what();
}

// Raises, naming the pass, where `verify` raises. Verifying is not the pass's time.
template <typename Verify>
void verify_after(const char* pass, const Verify& verify) {
  if (!verifies_passes()) return;
  try {
    verify();
  } catch (const std::exception& error) {
    TORCH_CHECK(false, "the pass '", pass, "' broke the graph: ", message_of(error));
  }
}

// A graph on its way through the passes.
class Pipeline {
 public:
  Pipeline(const Graph& recorded, const std::vector<GraphInput>& inputs) : inputs_(inputs) {
    verify_after("graph_from_tape", [&] { verify_graph(recorded); });
    run("functionalize", [&](auto&&) { return functionalize(recorded, inputs); });
  }

  template <typename Pass>
  void run(const char* name, const Pass& pass) {
    {
      const PassTimer timer(name);
      graph_ = pass(std::move(graph_));
    }
    verify_after(name, [&] { verify_functional(*graph_, inputs_); });
  }

  Graph& graph() { return *graph_; }
  std::shared_ptr<Graph> take() { return std::move(graph_); }

 private:
  const std::vector<GraphInput>& inputs_;
  std::shared_ptr<Graph> graph_;
};

// Of a functional graph, whose nodes have an origin. `operations` ascend.
void mark_library_operations(Graph& graph, const std::vector<int64_t>& operations) {
  if (operations.empty()) return;
  for (torch::jit::Node* node : graph.nodes())
    if (node->hasAttribute(kOriginAttribute) &&
        std::ranges::binary_search(operations, node->i(kOriginAttribute)))
      node->i_(kLibraryAttribute, 1);
}

}  // namespace

CoreGraph core_graph_of(const Graph& recorded, const std::vector<GraphInput>& inputs,
                        const GraphPass& of_backend,
                        const std::vector<int64_t>& library_operations) {
  Pipeline pipeline(recorded, inputs);
  mark_library_operations(pipeline.graph(), library_operations);
  print_pass("functionalized", pipeline.graph());
  std::vector<int64_t> offsets;
  for (const GraphInput& input : inputs) offsets.push_back(input.offset);
  pipeline.run("decompose", [&](auto graph) { return decompose(std::move(graph), offsets); });
  pipeline.run("add_pieces", [](auto graph) { return add_pieces(std::move(graph)); });
  pipeline.run("simplify", [&](auto graph) { return simplify(std::move(graph), offsets); });
  pipeline.run("choose_writes",
               [&](auto graph) { return choose_writes(std::move(graph), offsets); });
  pipeline.run("move_biases", [&](auto graph) { return move_biases(std::move(graph), offsets); });
  if (of_backend) pipeline.run("of the backend", of_backend);
  print_pass("core graph", pipeline.graph());
  const PassTimer timer("read");
  CoreGraph core = read_core_graph(pipeline.take());
  choose_joins(core);
  return core;
}

}  // namespace torch_lazy
