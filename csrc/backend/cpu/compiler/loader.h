// Object files to executable code in this process.
#pragma once

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/Error.h>

#include <atomic>
#include <memory>

#include "backend/cpu/compiler/compiler_api.h"

namespace torch_lazy::compiler {

// Thread-safe: ORC's session locks.
class Loader {
 public:
  // One object, in a namespace of its own.
  struct Code {
    Loader* loader;
    llvm::orc::JITDylib* library;  // the session's
    void* address;
  };

  static llvm::Expected<std::unique_ptr<Loader>> create(TorchLazyResolve resolve, void* context);
  ~Loader();

  llvm::Expected<std::unique_ptr<Code>> load(llvm::StringRef object, llvm::StringRef entry);
  void unload(const Code& code);

 private:
  Loader(TorchLazyResolve resolve, void* context) : resolve_(resolve), context_(context) {}

  TorchLazyResolve resolve_;
  void* context_;
  std::atomic<uint64_t> loaded_{0};  // so that every object has a name
  std::unique_ptr<llvm::orc::ExecutionSession> session_;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> linking_;
};

}  // namespace torch_lazy::compiler
