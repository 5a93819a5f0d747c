// Libraries of CUDA, none of which this one is linked with: found and opened when they are wanted.
#pragma once

#include <string>
#include <vector>

namespace torch_lazy::cuda {

struct OpenedLibrary {
  void* handle = nullptr;  // never closed
  std::string file;        // as the loader names it
};

// The first of `names` ("libnvrtc.so.13") that is there: what the process has loaded already, then
// the packages "nvidia-..." installed beside PyTorch, then the system's.
// Raises std::runtime_error that says `what` was looked for under which names, and what the loader
// said.
OpenedLibrary open_library(const std::string& what, const std::vector<std::string>& names);

// The files in NVIDIA's packages beside PyTorch whose names match the pattern ("libnvrtc.so.*").
std::vector<std::string> files_in_packages(const std::string& pattern);

// Null where the library has no such function.
void* find_function(const OpenedLibrary& library, const char* name);

// Sets `function`; raises std::runtime_error where the library, named with its file, has none such.
template <typename Function>
void resolve(const OpenedLibrary& library, const char* name, Function& function);

// ---------------------------------------------------------------- implementation

[[noreturn]] void raise_missing_function(const OpenedLibrary& library, const char* name);

template <typename Function>
void resolve(const OpenedLibrary& library, const char* name, Function& function) {
  void* const found = find_function(library, name);
  if (!found) raise_missing_function(library, name);
  function = reinterpret_cast<Function>(found);
}

}  // namespace torch_lazy::cuda
