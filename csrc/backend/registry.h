// Backends by name. A vendor's library registers itself when it is loaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/api.h"

namespace torch_lazy {

using BackendFactory = std::unique_ptr<Backend> (*)();

// Raises when the version is not ours or the name is taken.
void register_backend(const std::string& name, BackendFactory factory,
                      int interface_version = kBackendInterfaceVersion);
TORCH_LAZY_MODULE_API std::vector<std::string> registered_backends();

// The backend of that name, made on first use; raises when none is registered under it, naming
// those that are.
TORCH_LAZY_API Backend& backend_by_name(const std::string& name);

}  // namespace torch_lazy
