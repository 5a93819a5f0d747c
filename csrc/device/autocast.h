// Autocast for device `lazy`.
#pragma once

#include "base/api.h"

namespace torch_lazy {

// Registers the casts. Once a process.
void register_autocast();

// In a region of it, and not within an operator that has cast its arguments.
bool is_autocast_active();

// Forgets the casts of parameters; where the outermost autocast region ends.
TORCH_LAZY_MODULE_API void clear_autocast_cache();

}  // namespace torch_lazy
