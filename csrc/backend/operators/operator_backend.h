// A backend made of a table of operators. A vendor derives from it, or registers one as it is.
#pragma once

#include "backend/operators/command_backend.h"

namespace torch_lazy {

class TORCH_LAZY_API OperatorBackend : public CommandBackend {
 public:
  using CommandBackend::CommandBackend;

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    return compile_commands(*graph, options, nullptr);
  }
};

}  // namespace torch_lazy
