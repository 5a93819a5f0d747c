// What code is compiled for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/compiler/compiler_api.h"

namespace llvm {
class TargetMachine;
}

namespace torch_lazy::compiler {

struct Target {
  std::string triple;
  std::string processor;
  std::vector<std::string> features;  // "+fma", "-amx-tile"
  int vector_bits = 128;

  std::string describe() const;
};

// False where the architecture has no such target.
bool find_target(TorchLazyTarget which, Target& target, std::string& error);

// Null where LLVM cannot generate code for the target.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, std::string& error);

}  // namespace torch_lazy::compiler
