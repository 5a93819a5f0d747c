// Backends by name: our own, and those that libraries from outside brought (load_library.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/api.h"

namespace torch_lazy {

// May raise anything. It must not take Python's GIL, which its caller may wait with.
using BackendFactory = std::unique_ptr<Backend> (*)();

struct BackendOutlook {
  std::string error;      // why it cannot be made on this machine, one sentence; empty for nothing
  std::string libraries;  // what it has to open, with versions and files; empty where nothing
};

// What can be said of a backend before it is made. Cheap, and it starts no driver: it is asked
// whenever backends are listed.
using BackendCheck = BackendOutlook (*)();

struct RegisteredBackend {
  std::string name;
  std::string file;       // of its library; empty for our own
  std::string error;      // why it cannot be made, or could not when last tried; empty otherwise
  std::string libraries;  // see BackendOutlook
};

// Raises when another one has the name.
void register_backend(const std::string& name, BackendFactory factory, const std::string& file = {},
                      BackendCheck check = nullptr);
TORCH_LAZY_MODULE_API std::vector<RegisteredBackend> registered_backends();
bool is_registered(const std::string& name);

// The backend of that name, made on first use and never destroyed. Raises std::runtime_error where
// none is registered under it, naming those that are, and where it cannot be made.
TORCH_LAZY_API Backend& backend_by_name(const std::string& name);

}  // namespace torch_lazy
