// Steps that are commands of a device's own, made by a backend's table of operators.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/operator_table.h"
#include "plan/plan.h"

namespace torch_lazy {

// A call as tables of operators and compilers of graphs are asked about it.
struct DescribedCall {
  OperatorCall call;
  std::vector<uint32_t> slots;  // of the tensors that it reads, flattened
};

// None where an argument is more than a tensor, a list of tensors or a constant.
std::optional<DescribedCall> describe_call(
    const Step& call, const std::function<TensorDescription(uint32_t slot)>& describe,
    std::vector<TensorDescription> results);

// The command for a call, with the slots of what it reads; those of its results are the caller's to
// add, and are described by `results`. None where the table has none for it.
std::optional<OperatorStep> operator_step(
    const OperatorTable& table, const Step& call,
    const std::function<TensorDescription(uint32_t slot)>& describe,
    std::vector<TensorDescription> results);

// The command for a copy between tensors of equal sizes: a call of aten::copy_ whose first argument
// and result is the target. None where the table has none for it.
std::optional<OperatorStep> copy_step(const OperatorTable& table, uint32_t source,
                                      const TensorDescription& source_description, uint32_t target,
                                      const TensorDescription& target_description);

}  // namespace torch_lazy
