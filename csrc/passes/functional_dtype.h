// The dtype of what an operator returns in place of what another writes.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "passes/operator_form.h"

namespace torch_lazy {

struct FunctionalDtypes {
  std::vector<c10::ScalarType> computed;  // of each tensor that is written, lists flattened
  // Its argument `dtype`, which is None or not given, has to name the dtype to write.
  bool set_dtype = false;
};

// An in-place operator casts its result to what it writes; its functional twin promotes. Asks the
// operator itself: runs it on tensors of one element that have the dtypes of the node's. Not thread
// safe.
class FunctionalDtypeFinder {
 public:
  // `wanted` are the dtypes that are written. Raises where the operator has to compute in another
  // dtype than it would by itself, and cannot be told to, and where it makes something of other
  // sizes than its out argument has.
  FunctionalDtypes of(const torch::jit::Node& node, const OperatorForm& form,
                      const std::vector<c10::ScalarType>& wanted);

 private:
  std::unordered_map<std::string, FunctionalDtypes> known_;
};

}  // namespace torch_lazy
