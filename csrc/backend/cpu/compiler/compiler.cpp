#include "backend/cpu/compiler/compiler.h"

#include <clang/Basic/Version.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "backend/cpu/compiler/front_end.h"
#include "backend/cpu/compiler/guard.h"
#include "backend/cpu/compiler/optimize.h"

namespace torch_lazy::compiler {
namespace {

// Nanoseconds of processor time since the last call.
class Stopwatch {
 public:
  int64_t lap() {
    const auto before = std::exchange(start_, processor_time());
    return (start_ - before).count();
  }

 private:
  std::chrono::nanoseconds start_ = processor_time();
};

// Errors after the front end, such as inline assembly that does not assemble. LLVM's own handling
// ends the process.
struct BackEndErrors : llvm::DiagnosticHandler {
  explicit BackEndErrors(std::string* messages) : messages(messages) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(*messages);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << '\n';
    return true;
  }
  std::string* messages;
};

}  // namespace

std::unique_ptr<Compiler> Compiler::create(TorchLazyTarget which, std::string& error) {
  std::unique_ptr<Compiler> compiler(new Compiler);
  if (!find_target(which, compiler->target_, error)) return nullptr;
  compiler->description_ = compiler->target_.describe() + ';' + clang::getClangFullVersion() + ';' +
                           describe_options() + ';' + describe_passes();
  compiler->machine_ = make_target_machine(compiler->target_, error);
  return compiler->machine_ != nullptr ? std::move(compiler) : nullptr;
}

CompileOutcome Compiler::compile(const TorchLazyCompileRequest& request) {
  CompileOutcome outcome;
  if (request.source_size > request.source_size_limit) {
    outcome.bytes = "the source has " + std::to_string(request.source_size) +
                    " bytes, and the limit is " + std::to_string(request.source_size_limit);
    return outcome;
  }
  // After a crash this one is not destroyed, since its state is unknown.
  auto unguarded = std::make_unique<CompileOutcome>();
  std::string failure;
  if (run_guarded([&] { compile_unguarded(request, *unguarded); }, request.time_limit_ns,
                  request.safe_point, failure)) {
    return std::move(*unguarded);
  }
  static_cast<void>(unguarded.release());
  static_cast<void>(machine_.release());
  outcome.bytes = std::move(failure);
  return outcome;
}

void Compiler::compile_unguarded(const TorchLazyCompileRequest& request, CompileOutcome& outcome) {
  Stopwatch watch;
  if (machine_ == nullptr) {
    machine_ = make_target_machine(target_, outcome.bytes);
    if (machine_ == nullptr) return;
  }
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<BackEndErrors>(&errors));
  const std::unique_ptr<llvm::Module> module = parse(
      llvm::StringRef(request.source, request.source_size), options_for(target_), context, errors);
  outcome.front_end_ns = watch.lap();
  llvm::SmallVector<char, 0> bytes;
  if (module != nullptr) {
    optimize(*module, *machine_);
    outcome.optimizer_ns = watch.lap();
    llvm::raw_svector_ostream stream(bytes);
    generate(*module, *machine_, request.output, stream);
    outcome.code_generator_ns = watch.lap();
  }
  outcome.succeeded = module != nullptr && errors.empty();
  outcome.bytes = outcome.succeeded ? std::string(bytes.data(), bytes.size()) : std::move(errors);
}

}  // namespace torch_lazy::compiler
