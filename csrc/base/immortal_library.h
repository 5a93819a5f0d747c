// Registrations with PyTorch's dispatcher.
#pragma once

#include <torch/library.h>

#include <cstdint>
#include <optional>

namespace torch_lazy {

// Lives as long as the process: unregistering while it exits would race with other threads.
// Builtins name the caller's line because Clang 14, which checks the sources, has no
// std::source_location.
inline torch::Library& immortal_library(torch::Library::Kind kind, const char* name_space,
                                        std::optional<c10::DispatchKey> key,
                                        const char* file = __builtin_FILE(),
                                        uint32_t line = __builtin_LINE()) {
  return *new torch::Library(kind, name_space, key, file, line);
}

}  // namespace torch_lazy
