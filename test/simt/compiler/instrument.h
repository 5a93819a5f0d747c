// CUDA's IR to that of a module for this machine, which tells the emulator what it does.
#pragma once

#include <string>

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace torch_lazy::simt {

// Every access that is not to a thread's own variables goes through simt_access(address, site),
// which gives the address to use in its place; the module gets its simt_module. False with `error`
// set where the kernel holds something the emulator has not.
bool instrument(llvm::Module& module, llvm::TargetMachine& machine, std::string& error);

}  // namespace torch_lazy::simt
