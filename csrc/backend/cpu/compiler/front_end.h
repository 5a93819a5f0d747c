// Clang: C++ source text to an LLVM module.
#pragma once

#include <llvm/ADT/StringRef.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/compiler/target.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace torch_lazy::compiler {

// The language and its floating point, as options of Clang's front end; part of what an object
// depends on.
std::string describe_options();

// These and what they are for a target.
std::vector<std::string> options_for(const Target& target);

// The module, not optimized yet, or null with Clang's messages in `messages`. `options` are those
// of `clang -cc1`.
std::unique_ptr<llvm::Module> parse(llvm::StringRef source, const std::vector<std::string>& options,
                                    llvm::LLVMContext& context, std::string& messages);

}  // namespace torch_lazy::compiler
