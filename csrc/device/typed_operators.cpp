#include "device/typed_operators.h"

namespace torch_lazy {

const TypedOperators::Kernels* TypedOperators::find(const c10::OperatorHandle& op) const {
  const auto found = kernels_.find(c10::toString(op.operator_name()));
  return found == kernels_.end() ? nullptr : &found->second;
}

}  // namespace torch_lazy
