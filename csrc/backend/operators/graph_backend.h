// A backend made of a compiler of graphs. A vendor derives from it, or registers one as it is.
#pragma once

#include "backend/graph_compiler.h"
#include "backend/operators/command_backend.h"

namespace torch_lazy {

class TORCH_LAZY_API GraphBackend : public CommandBackend {
 public:
  // `where`: the type of device, or a runtime for one that PyTorch has no kernels for. `operators`
  // does what no graph takes, copies (aten::copy_) among it; what is not in it is ATen's.
  template <typename Where>
  GraphBackend(Where where, std::string device_name, GraphCompiler graphs,
               OperatorTable operators = {})
      : CommandBackend(std::move(where), std::move(device_name), std::move(operators)),
        graphs_(std::move(graphs)) {}

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    return compile_commands(*graph, options, &graphs_);
  }

 private:
  const GraphCompiler graphs_;
};

}  // namespace torch_lazy
