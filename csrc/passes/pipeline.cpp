#include "passes/pipeline.h"

#include "base/config.h"
#include "base/debug.h"
#include "base/pass_times.h"
#include "ir/print.h"
#include "passes/decompose.h"
#include "passes/functionalize.h"
#include "passes/move_biases.h"
#include "passes/simplify.h"

namespace torch_lazy {
namespace {

void print_pass(const char* name, const torch::jit::Graph& graph) {
  if (config().debug >= kDebugPasses) debug_print(std::string(name) + "\n" + print_graph(graph));
}

template <typename Pass>
auto timed(const char* name, const Pass& pass) {
  const PassTimer timer(name);
  return pass();
}

}  // namespace

CoreGraph core_graph_of(const torch::jit::Graph& recorded, const std::vector<GraphInput>& inputs,
                        const GraphPass& of_backend) {
  std::shared_ptr<torch::jit::Graph> graph =
      timed("functionalize", [&] { return functionalize(recorded, inputs); });
  print_pass("functionalized", *graph);
  std::vector<int64_t> offsets;
  for (const GraphInput& input : inputs) offsets.push_back(input.offset);
  graph = timed("decompose", [&] { return decompose(std::move(graph), offsets); });
  graph = timed("simplify", [&] { return move_biases(simplify(std::move(graph), offsets)); });
  if (of_backend) graph = timed("of the backend", [&] { return of_backend(std::move(graph)); });
  print_pass("core graph", *graph);
  return timed("read", [&] { return read_core_graph(std::move(graph)); });
}

}  // namespace torch_lazy
