#include "simt/compiler/simt_compiler.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/compiler/front_end.h"
#include "backend/cpu/compiler/optimize.h"
#include "backend/cpu/compiler/target.h"
#include "simt/compiler/instrument.h"

namespace torch_lazy::simt {
namespace {

constexpr const char* kBuiltins =
#include "simt/compiler/cuda_builtins.inc"
    ;

// A device's front end, so that what is checked is CUDA's language and PTX's constraints; the IR is
// then made this machine's. Lines are kept: they say where an access is.
std::vector<std::string> options(const std::string& host) {
  return {
      "-O2",
      "-x",
      "cuda",
      "-std=c++17",
      "-fcuda-is-device",
      "-triple",
      "nvptx64-nvidia-cuda",
      "-aux-triple",
      host,
      "-target-cpu",
      "sm_80",
      "-target-feature",
      "+ptx80",
      "-ffp-contract=off",
      "-fno-rtti",
      "-nostdsysteminc",
      "-nobuiltininc",
      "-debug-info-kind=line-tables-only",
      "-w",
      "-ferror-limit",
      "5",
  };
}

void inline_always(llvm::Module& module) {
  llvm::PassBuilder builder;
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetimeIntrinsics=*/false));
  compiler::run_passes(module, builder, passes);
}

bool compile(llvm::StringRef source, llvm::SmallVectorImpl<char>& object, std::string& error) {
  compiler::Target target;
  if (!compiler::find_target(TORCH_LAZY_TARGET_HOST, target, error)) return false;
  const auto machine = compiler::make_target_machine(target, error);
  if (machine == nullptr) return false;
  llvm::LLVMContext context;
  const std::string whole = kBuiltins + ("#line 1 \"kernel.cu\"\n" + source.str());
  const auto module = compiler::parse(whole, options(target.triple), context, error);
  if (module == nullptr) return false;
  // Before anything is optimized: each access of the source is one of the module's, and what is
  // inlined knows where it was called.
  inline_always(*module);
  if (!instrument(*module, *machine, error)) return false;
  llvm::raw_string_ostream messages(error);
  if (llvm::verifyModule(*module, &messages)) return false;
  compiler::optimize(*module, *machine);
  llvm::raw_svector_ostream stream(object);
  compiler::generate(*module, *machine, TORCH_LAZY_OUTPUT_OBJECT, stream);
  return true;
}

}  // namespace
}  // namespace torch_lazy::simt

extern "C" __attribute__((visibility("default"))) int simt_compile(const char* source,
                                                                   size_t source_size,
                                                                   TorchLazyBytes* result) {
  llvm::SmallVector<char, 0> object;
  std::string error;
  const bool succeeded = torch_lazy::simt::compile({source, source_size}, object, error);
  const llvm::StringRef bytes =
      succeeded ? llvm::StringRef(object.data(), object.size()) : llvm::StringRef(error);
  result->size = bytes.size();
  result->data = static_cast<char*>(std::malloc(bytes.size() + 1));
  std::memcpy(result->data, bytes.data(), bytes.size());
  return succeeded ? 1 : 0;
}

extern "C" __attribute__((visibility("default"))) void simt_release(TorchLazyBytes* bytes) {
  std::free(bytes->data);
  *bytes = {};
}
