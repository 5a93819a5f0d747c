// Says once, by name and line, that an operator costs speed.
#pragma once

#include "ops/operator_info.h"

namespace torch_lazy {

// An operator without known effects (from torch.library, say) closes the window and runs eagerly.
// Counted each time; warned of once an operator, and not at all with config.warn_fallbacks off.
void warn_unknown_operator(const OperatorInfo& op);

}  // namespace torch_lazy
