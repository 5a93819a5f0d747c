// What others need to know of the operators of torch.distributed.
#pragma once

#include <ATen/core/ivalue.h>

namespace torch_lazy {

// Waits until the work of a collective is done; nothing for any other value. Raises what it raised.
void wait_if_work(const c10::IValue& value);

}  // namespace torch_lazy
