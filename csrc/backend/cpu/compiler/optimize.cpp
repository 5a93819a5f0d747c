#include "backend/cpu/compiler/optimize.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Target/TargetMachine.h>

#include "backend/cpu/compiler/guard.h"

namespace torch_lazy::compiler {
namespace {

// Kernels come as loops over explicit vectors, with little in them that -O2 could find: this much
// of it gives code as fast within 4 % in two thirds of the time. No vectorizer; loops are unrolled
// only where that makes them vanish.
constexpr const char* kPasses =
    "function(sroa,early-cse),"  // small before they are inlined many times
    "always-inline,"
    "function<eager-inv>("
    "sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),"
    "loop(indvars,loop-unroll-full),"
    "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";

// What functions that were optimized by themselves leave where they are inlined: arrays that they
// filled.
constexpr const char* kPassesOfApart =
    "always-inline,"
    "function<eager-inv>(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";

// Functions that are optimized before they are inlined (prelude, LAZY_APART) are inlined from now
// on. They are all that a kernel has which is not to be inlined. Returns whether there are any.
bool inline_apart(llvm::Module& module) {
  bool any = false;
  for (llvm::Function& function : module) {
    if (!function.hasInternalLinkage() || !function.hasFnAttribute(llvm::Attribute::NoInline))
      continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
    any = true;
  }
  return any;
}

// Loop strength reduction took a third of code generation and won nothing: an address is a base and
// the loop's index, which the processor adds for free.
constexpr const char* kCodeGeneratorOption = "-disable-lsr";

// Global to this library's own LLVM: the passes of code generation have no other switches.
void set_code_generator_option() {
  static const bool set = [] {
    const char* const arguments[] = {"torch_lazy", kCodeGeneratorOption};
    // With a stream for errors it returns instead of ending the process.
    return llvm::cl::ParseCommandLineOptions(2, arguments, "", &llvm::nulls());
  }();
  if (!set) llvm::report_fatal_error("LLVM does not know the option -disable-lsr");
}

// Code generation has no callback between passes, but its optional ones ask whether to run.
class SafePointGate : public llvm::OptPassGate {
 public:
  bool shouldRunPass(llvm::StringRef, llvm::StringRef) override {
    reach_safe_point();
    return true;
  }
  bool isEnabled() const override { return true; }
};

}  // namespace

std::string describe_passes() {
  return std::string(kPasses) + ';' + kPassesOfApart + ';' + kCodeGeneratorOption;
}

void run_passes(llvm::Module& module, llvm::PassBuilder& builder, llvm::ModulePassManager& passes) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  passes.run(module, modules);
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerBeforeNonSkippedPassCallback(
      [](llvm::StringRef, const llvm::Any&) { reach_safe_point(); });
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &callbacks);
  const auto run = [&](const char* text) {
    llvm::ModulePassManager passes;
    llvm::cantFail(builder.parsePassPipeline(passes, text));
    run_passes(module, builder, passes);
  };
  run(kPasses);
  if (inline_apart(module)) run(kPassesOfApart);
}

void generate(llvm::Module& module, llvm::TargetMachine& machine, TorchLazyOutput output,
              llvm::raw_pwrite_stream& stream) {
  if (output == TORCH_LAZY_OUTPUT_LLVM_IR) {
    module.print(stream, nullptr);
    return;
  }
  set_code_generator_option();
  SafePointGate gate;
  module.getContext().setOptPassGate(gate);
  llvm::legacy::PassManager passes;
  const auto type = output == TORCH_LAZY_OUTPUT_OBJECT ? llvm::CodeGenFileType::ObjectFile
                                                       : llvm::CodeGenFileType::AssemblyFile;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    llvm::report_fatal_error("LLVM cannot write object files for this target");
  }
  passes.run(module);
}

}  // namespace torch_lazy::compiler
