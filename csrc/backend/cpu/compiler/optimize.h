// LLVM's passes over one module, and code generation from it.
#pragma once

#include <llvm/IR/PassManager.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "backend/cpu/compiler/compiler_api.h"

namespace llvm {
class Module;
class PassBuilder;
class TargetMachine;
}  // namespace llvm

namespace torch_lazy::compiler {

// Part of what an object depends on.
std::string describe_passes();

// Runs the passes with the analyses that the builder knows.
void run_passes(llvm::Module& module, llvm::PassBuilder& builder, llvm::ModulePassManager& passes);

void optimize(llvm::Module& module, llvm::TargetMachine& machine);

// Writes `output` of the module, which is used up.
void generate(llvm::Module& module, llvm::TargetMachine& machine, TorchLazyOutput output,
              llvm::raw_pwrite_stream& stream);

}  // namespace torch_lazy::compiler
