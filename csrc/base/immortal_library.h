// Registrations with PyTorch's dispatcher.
#pragma once

#include <torch/library.h>

#include <optional>
#include <source_location>

namespace torch_lazy {

// Lives as long as the process: unregistering while it exits would race with other threads.
inline torch::Library& immortal_library(
    torch::Library::Kind kind, const char* name_space, std::optional<c10::DispatchKey> key,
    const std::source_location& where = std::source_location::current()) {
  return *new torch::Library(kind, name_space, key, where.file_name(), where.line());
}

}  // namespace torch_lazy
