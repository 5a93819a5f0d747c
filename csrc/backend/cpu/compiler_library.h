// Finds and opens libtorch_lazy_compiler.so.
#pragma once

#include <cstddef>
#include <string>

#include "backend/cpu/compiler/compiler_api.h"

namespace torch_lazy {

// Opened on first use: the file that the environment variable TORCH_LAZY_COMPILER_LIBRARY names,
// else the one beside the module. Never closed. Raises std::runtime_error, each time, where it
// cannot be opened.
const TorchLazyCompilerApi& compiler_library();

// Why there is none to open: the file is not there. Empty where it is; it is not opened.
std::string missing_compiler_library();

// Lets the system take the library's code and constants out of memory, if it was opened: 20 MiB
// that are of use while something is compiled. They are its file's and come back page by page.
void trim_compiler_library();

// Copies the text and gives the bytes back to the library.
std::string take_text(const TorchLazyCompilerApi& library, TorchLazyBytes& bytes);

}  // namespace torch_lazy
