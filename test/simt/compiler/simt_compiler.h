// The C interface of libtorch_lazy_simt_compiler.so: CUDA C++ to an object file for this machine,
// which tells the emulator of each access to memory. A library of its own, as the kernel compiler
// is: its LLVM meets no other.
#pragma once

#include <cstddef>

#include "backend/cpu/compiler/compiler_api.h"

extern "C" {

// Returns 1 with the object in `result`, whose one symbol is simt_module (module_layout.h), or 0
// with the messages. The result is given back by simt_release.
using SimtCompileFunction = int (*)(const char* source, size_t source_size, TorchLazyBytes* result);
using SimtReleaseFunction = void (*)(TorchLazyBytes* bytes);
}
