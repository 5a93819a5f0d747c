#include "backend/cpu/compiler/loader.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/Support/MemoryBuffer.h>

#include <string>

#include "backend/cpu/compiler/constants.h"

namespace torch_lazy::compiler {
namespace {

namespace orc = llvm::orc;

// Answers ORC's questions for names that an object does not define with the caller's function.
class ResolveFromCaller : public orc::DefinitionGenerator {
 public:
  ResolveFromCaller(TorchLazyResolve resolve, void* context)
      : resolve_(resolve), context_(context) {}

  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind, orc::JITDylib& library,
                            orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& symbols) override {
    orc::SymbolMap found;
    for (const auto& symbol : symbols) {
      const std::string name = (*symbol.first).str();
      if (void* address = resolve_(context_, name.c_str())) {
        map_constants_of(address);
        found[symbol.first] = {orc::ExecutorAddr::fromPtr(address),
                               llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
      }
    }
    if (found.empty()) return llvm::Error::success();
    return library.define(orc::absoluteSymbols(std::move(found)));
  }

 private:
  TorchLazyResolve resolve_;
  void* context_;
};

// What ORC reports while this thread loads: the cause, which the error that it returns lacks.
thread_local std::string* reports = nullptr;

void report(llvm::Error error) {
  const std::string message = toString(std::move(error));
  if (reports != nullptr) *reports += message + '\n';
}

}  // namespace

llvm::Expected<std::unique_ptr<Loader>> Loader::create(TorchLazyResolve resolve, void* context) {
  std::unique_ptr<Loader> loader(new Loader(resolve, context));
  // Linking happens on the calling thread: the library starts no threads that outlive a call.
  auto process = orc::SelfExecutorProcessControl::Create(
      nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
  if (!process) return process.takeError();
  loader->session_ = std::make_unique<orc::ExecutionSession>(std::move(*process));
  loader->session_->setErrorReporter(report);
  loader->linking_ = std::make_unique<orc::ObjectLinkingLayer>(*loader->session_);
  return loader;
}

Loader::~Loader() {
  if (session_ != nullptr) consumeError(session_->endSession());
}

llvm::Expected<std::unique_ptr<Loader::Code>> Loader::load(llvm::StringRef object,
                                                           llvm::StringRef entry) {
  orc::JITDylib& library =
      session_->createBareJITDylib("kernel" + std::to_string(loaded_.fetch_add(1)));
  std::string causes;
  reports = &causes;
  library.addGenerator(std::make_unique<ResolveFromCaller>(resolve_, context_));
  llvm::Error added =
      linking_->add(library, llvm::MemoryBuffer::getMemBufferCopy(object, library.getName()));
  llvm::Expected<orc::ExecutorSymbolDef> symbol =
      added ? llvm::Expected<orc::ExecutorSymbolDef>(std::move(added))
            : session_->lookup({&library}, session_->intern(entry));
  reports = nullptr;
  if (!symbol) {
    consumeError(session_->removeJITDylib(library));
    return llvm::createStringError(causes + toString(symbol.takeError()));
  }
  return std::make_unique<Code>(Code{this, &library, symbol->getAddress().toPtr<void*>()});
}

void Loader::unload(const Code& code) {
  consumeError(session_->removeJITDylib(*code.library));
}

}  // namespace torch_lazy::compiler
