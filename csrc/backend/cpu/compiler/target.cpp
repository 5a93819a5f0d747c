#include "backend/cpu/compiler/target.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

namespace torch_lazy::compiler {
namespace {

bool has(const std::vector<std::string>& features, const char* feature) {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

// What make_target_machine asks for, as part of what an object depends on.
constexpr const char* kCodeGeneration = "pic,small,default,jit";

void describe_host(Target& target) {
  target.processor = llvm::sys::getHostCPUName().str();
  for (const auto& [name, present] : llvm::sys::getHostCPUFeatures()) {
    // LLVM 19 takes avx10.1 to be a limit on the vector width and then splits 512-bit vectors.
    if (name.starts_with("avx10")) continue;
    target.features.push_back((present ? "+" : "-") + name.str());
  }
  // A hash table gave them; sorted, the description is the same in every process.
  std::sort(target.features.begin(), target.features.end());
  if (has(target.features, "+avx512f")) {
    target.vector_bits = 512;
  } else if (has(target.features, "+avx2")) {
    target.vector_bits = 256;
  }
}

}  // namespace

std::string Target::describe() const {
  return triple + ';' + processor + ';' + llvm::join(features, ",") + ';' + kCodeGeneration;
}

bool find_target(TorchLazyTarget which, Target& target, std::string& error) {
  const llvm::Triple triple(llvm::sys::getProcessTriple());
  target.triple = triple.str();
  const bool x86 = triple.getArch() == llvm::Triple::x86_64;
  switch (which) {
    case TORCH_LAZY_TARGET_HOST:
      describe_host(target);
      return true;
    case TORCH_LAZY_TARGET_AVX2:
      if (!x86) {
        error = "the target avx2 needs an x86-64 machine; this one is " + target.triple;
        return false;
      }
      target.processor = "x86-64-v3";
      target.vector_bits = 256;
      return true;
    case TORCH_LAZY_TARGET_BASELINE:
      target.processor = x86 ? "x86-64" : "generic";
      return true;
  }
  error = "no target has the number " + std::to_string(static_cast<int>(which));
  return false;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, std::string& error) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  static_cast<void>(initialized);
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) return nullptr;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      target.triple, target.processor, llvm::join(target.features, ","), llvm::TargetOptions(),
      llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (machine == nullptr) error = "LLVM has no code generator for " + target.describe();
  return machine;
}

}  // namespace torch_lazy::compiler
