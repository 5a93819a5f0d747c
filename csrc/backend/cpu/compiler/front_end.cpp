#include "backend/cpu/compiler/front_end.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/Preprocessor.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <vector>

#include "backend/cpu/compiler/guard.h"

namespace torch_lazy::compiler {
namespace {

constexpr const char* kFileName = "kernel.cc";

// Of `clang -cc1`, whose defaults are not the driver's: no exceptions, no unwind tables, no math
// errno unless asked for. Floating point stays as written: a kernel says fma where it means one,
// and reassociates where a pragma or its own accumulators say so (done globally, it folds the
// `(t + magic) - magic` of range reductions).
constexpr const char* kOptions[] = {
    "-O2",
    "-x",
    "c++",
    "-std=c++20",
    "-ffp-contract=off",
    "-fno-rtti",
    "-nostdsysteminc",
    "-nobuiltininc",
    "-mrelocation-model",
    "pic",
    "-w",
    "-ferror-limit",
    "5",
};

class GenerateModule : public clang::ASTFrontendAction {
 public:
  explicit GenerateModule(llvm::LLVMContext& context) : context_(context) {}
  std::unique_ptr<llvm::Module> take_module() { return std::move(module_); }

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                        llvm::StringRef file) override {
    // The clock is read rarely: most tokens take less time than it does.
    instance.getPreprocessor().setTokenWatcher([count = 0u](const clang::Token&) mutable {
      if (++count % 256 == 0) reach_safe_point();
    });
    std::unique_ptr<clang::CodeGenerator> generator(
        clang::CreateLLVMCodeGen(instance.getDiagnostics(), file, &instance.getVirtualFileSystem(),
                                 instance.getHeaderSearchOpts(), instance.getPreprocessorOpts(),
                                 instance.getCodeGenOpts(), context_));
    generator_ = generator.get();
    return generator;
  }

  // The last moment at which the generator lives.
  void EndSourceFileAction() override { module_.reset(generator_->ReleaseModule()); }

 private:
  llvm::LLVMContext& context_;
  clang::CodeGenerator* generator_ = nullptr;  // the instance's
  std::unique_ptr<llvm::Module> module_;
};

}  // namespace

std::string describe_options() {
  return llvm::join(std::begin(kOptions), std::end(kOptions), " ");
}

std::vector<std::string> options_for(const Target& target) {
  std::vector<std::string> options(std::begin(kOptions), std::end(kOptions));
  options.insert(options.end(), {"-triple", target.triple, "-target-cpu", target.processor});
  for (const std::string& feature : target.features) {
    options.insert(options.end(), {"-target-feature", feature});
  }
  // Some processors' own preference is narrower than their registers, for the sake of code that
  // uses few vector instructions.
  options.push_back("-mprefer-vector-width=" + std::to_string(target.vector_bits));
  return options;
}

std::unique_ptr<llvm::Module> parse(llvm::StringRef source, const std::vector<std::string>& options,
                                    llvm::LLVMContext& context, std::string& messages) {
  llvm::raw_string_ostream stream(messages);
  clang::CompilerInstance instance;
  auto* diagnostic_options = new clang::DiagnosticOptions;  // counted by those that use it
  diagnostic_options->IgnoreWarnings = true;                // -w sets it in the invocation only
  diagnostic_options->ShowPresumedLoc = 1;                  // where a source has lines of its own
  instance.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> diagnostics =
      clang::CompilerInstance::createDiagnostics(
          diagnostic_options, new clang::TextDiagnosticPrinter(stream, diagnostic_options));

  std::vector<const char*> raw;
  raw.reserve(options.size() + 1);
  for (const std::string& option : options) raw.push_back(option.c_str());
  raw.push_back(kFileName);
  if (!clang::CompilerInvocation::CreateFromArgs(instance.getInvocation(), raw, *diagnostics)) {
    return nullptr;
  }
  instance.setDiagnostics(diagnostics.get());

  // The source is the only file there is: nothing of the machine's is read.
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(kFileName, 0, llvm::MemoryBuffer::getMemBufferCopy(source, kFileName));
  instance.createFileManager(files);

  GenerateModule action(context);
  if (!instance.ExecuteAction(action)) return nullptr;
  return action.take_module();
}

}  // namespace torch_lazy::compiler
