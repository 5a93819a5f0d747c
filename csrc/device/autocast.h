// Autocast for device `lazy`.
#pragma once

namespace torch_lazy {

// Registers the casts. Once a process.
void register_autocast();

// Forgets the casts of parameters; where the outermost autocast region ends.
void clear_autocast_cache();

}  // namespace torch_lazy
