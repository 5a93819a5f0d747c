// The core operators that kernels compute, as a table; docs/core-operators.md says what each means.
#pragma once

#include <string>

#include "passes/core_graph.h"

namespace torch_lazy {

struct CoreOperator {
  CoreKind kind;
  primitive::Op op;
  size_t tensors;  // leading arguments that are tensors or lists of them
};

// `name` with its overload, as operator_name() gives it; null for what runs as a library call.
const CoreOperator* find_core_operator(const std::string& name);

}  // namespace torch_lazy
