// The source location of an operation: in backward that of the forward operation it belongs to.
#pragma once

#include "tape/source_location.h"

namespace torch_lazy {

// The location to record for the operation that is being dispatched. In backward this is the line
// of the forward operation that the running autograd node belongs to, if still known. Where
// autograd has just made a node for this operation (it does so right before it calls the kernel
// below itself), the location is also remembered for that node.
LocationId current_operation_location(bool in_backward);

}  // namespace torch_lazy
