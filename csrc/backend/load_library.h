// Backends in shared libraries of their own.
#pragma once

#include <string>

#include "base/api.h"

namespace torch_lazy {

// Opens the file, which must show a backend of that name (backend_library.h) for this torch_lazy
// and torch, and registers it. Raises std::runtime_error, one sentence that says what was found,
// what was expected and what to do; nothing of the library has been called then but its static
// constructors. The file stays open for good.
TORCH_LAZY_MODULE_API void load_backend_library(const std::string& name, const std::string& file);

}  // namespace torch_lazy
