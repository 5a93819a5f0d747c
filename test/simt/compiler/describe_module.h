// simt_module (module_layout.h), as data of an LLVM module.
#pragma once

#include <vector>

#include "simt/module_layout.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace torch_lazy::simt {

// NVPTX's number of the address space that the threads of a block share.
constexpr unsigned kSharedSpace = 3;
// The most dynamic shared memory that a block can ask for, on the devices that have most.
constexpr unsigned kMostSharedBytes = 227 << 10;

// The functions that Clang took for kernels.
std::vector<llvm::Function*> kernels_of(const llvm::Module& module);

// Shared variables become ordinary ones: one block runs at a time.
void describe_module(llvm::Module& module, const std::vector<llvm::Function*>& kernels,
                     const std::vector<Site>& sites);

}  // namespace torch_lazy::simt
