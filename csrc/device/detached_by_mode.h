// detach() as Python's modes see it, for classes of tensors that copy themselves.
#pragma once

#include <c10/core/TensorImpl.h>

namespace torch_lazy {

// What the innermost mode makes of tensor.detach(), as for every other tensor; null where there is
// none, or where it leaves that to the tensor.
c10::intrusive_ptr<c10::TensorImpl> detached_by_mode(const c10::TensorImpl& tensor,
                                                     const c10::VariableVersion& version,
                                                     bool allow_metadata_change);

}  // namespace torch_lazy
