// The table of compiler_api.h: C types in, C types out.

#include "backend/cpu/compiler/compiler_api.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "backend/cpu/compiler/compiler.h"
#include "backend/cpu/compiler/loader.h"

using torch_lazy::compiler::CompileOutcome;
using torch_lazy::compiler::Compiler;
using torch_lazy::compiler::Loader;

struct TorchLazyCompiler {
  std::unique_ptr<Compiler> compiler;
};

struct TorchLazyLoader {
  std::unique_ptr<Loader> loader;
};

struct TorchLazyCode {
  std::unique_ptr<Loader::Code> code;
};

namespace {

TorchLazyBytes to_bytes(const std::string& text) {
  TorchLazyBytes bytes{static_cast<char*>(std::malloc(text.size() + 1)), text.size()};
  if (bytes.data == nullptr) return {nullptr, 0};
  std::memcpy(bytes.data, text.c_str(), text.size() + 1);
  return bytes;
}

void tell(TorchLazyBytes* error, const std::string& message) {
  if (error != nullptr) *error = to_bytes(message);
}

TorchLazyCompiler* create_compiler(TorchLazyTarget target, TorchLazyBytes* error) {
  std::string message;
  auto compiler = Compiler::create(target, message);
  if (compiler != nullptr) return new TorchLazyCompiler{std::move(compiler)};
  tell(error, message);
  return nullptr;
}

void destroy_compiler(TorchLazyCompiler* compiler) {
  delete compiler;
}

const char* describe(const TorchLazyCompiler* compiler) {
  return compiler->compiler->description().c_str();
}

int32_t vector_bits(const TorchLazyCompiler* compiler) {
  return compiler->compiler->vector_bits();
}

TorchLazyCompileResult compile(TorchLazyCompiler* compiler,
                               const TorchLazyCompileRequest* request) {
  const CompileOutcome outcome = compiler->compiler->compile(*request);
  return {outcome.succeeded ? 1 : 0, to_bytes(outcome.bytes), outcome.front_end_ns,
          outcome.optimizer_ns, outcome.code_generator_ns};
}

TorchLazyLoader* create_loader(TorchLazyResolve resolve, void* context, TorchLazyBytes* error) {
  auto loader = Loader::create(resolve, context);
  if (loader) return new TorchLazyLoader{std::move(*loader)};
  tell(error, toString(loader.takeError()));
  return nullptr;
}

void destroy_loader(TorchLazyLoader* loader) {
  delete loader;
}

TorchLazyCode* load(TorchLazyLoader* loader, const char* object, size_t object_size,
                    const char* entry, void** address, TorchLazyBytes* error) {
  auto code = loader->loader->load(llvm::StringRef(object, object_size), entry);
  if (!code) {
    tell(error, toString(code.takeError()));
    return nullptr;
  }
  *address = (*code)->address;
  return new TorchLazyCode{std::move(*code)};
}

void unload(TorchLazyCode* code) {
  code->code->loader->unload(*code->code);
  delete code;
}

void release(TorchLazyBytes* bytes) {
  std::free(bytes->data);
  *bytes = {nullptr, 0};
}

constexpr TorchLazyCompilerApi kApi = {
    TORCH_LAZY_COMPILER_API_VERSION,
    create_compiler,
    destroy_compiler,
    describe,
    vector_bits,
    compile,
    create_loader,
    destroy_loader,
    load,
    unload,
    release,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TorchLazyCompilerApi*
torch_lazy_compiler_api(int32_t version) {
  return version == TORCH_LAZY_COMPILER_API_VERSION ? &kApi : nullptr;
}
