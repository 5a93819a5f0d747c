// Source text to an object file, for one target.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "backend/cpu/compiler/compiler_api.h"
#include "backend/cpu/compiler/target.h"

namespace torch_lazy::compiler {

struct CompileOutcome {
  bool succeeded = false;
  std::string bytes;  // the output, or why there is none
  int64_t front_end_ns = 0, optimizer_ns = 0, code_generator_ns = 0;
};

class Compiler {
 public:
  // Null with `error` set where there is no such target.
  static std::unique_ptr<Compiler> create(TorchLazyTarget which, std::string& error);

  CompileOutcome compile(const TorchLazyCompileRequest& request);
  const std::string& description() const { return description_; }
  int vector_bits() const { return target_.vector_bits; }

 private:
  Compiler() = default;
  void compile_unguarded(const TorchLazyCompileRequest& request, CompileOutcome& outcome);

  Target target_;
  std::string description_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace torch_lazy::compiler
