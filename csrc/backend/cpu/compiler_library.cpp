#include "backend/cpu/compiler_library.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace torch_lazy {
namespace {

constexpr const char* kFileName = "libtorch_lazy_compiler.so";
constexpr const char* kVariable = "TORCH_LAZY_COMPILER_LIBRARY";

std::string library_path() {
  if (const char* path = std::getenv(kVariable); path != nullptr && *path != '\0') return path;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&library_path), &info) == 0) return kFileName;
  std::string path = info.dli_fname;
  // Without a slash dlopen would search the system's folders.
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? "./" : path.substr(0, slash + 1)) + kFileName;
}

struct Opened {
  const TorchLazyCompilerApi* api = nullptr;
  std::string error;
};

Opened open_library() {
  const std::string path = library_path();
  std::string why;
  // Its symbols are its own: other libraries of the process may hold an LLVM too.
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const auto function = reinterpret_cast<TorchLazyCompilerApiFunction>(
        dlsym(library, TORCH_LAZY_COMPILER_API_SYMBOL));
    const TorchLazyCompilerApi* api =
        function != nullptr ? function(TORCH_LAZY_COMPILER_API_VERSION) : nullptr;
    if (api != nullptr) return {api, ""};
    why = fmt::format("it does not offer version {} of the interface",
                      TORCH_LAZY_COMPILER_API_VERSION);
  } else {
    why = dlerror();
  }
  return {nullptr,
          fmt::format("the kernel compiler {} cannot be loaded: {}. Without it the CPU backend "
                      "falls back to the interpreter, which is correct but compiles no kernels. "
                      "Install torch_lazy again, so that {} lies beside its extension module, or "
                      "set {} to its path.",
                      path, why, kFileName, kVariable)};
}

}  // namespace

const TorchLazyCompilerApi& compiler_library() {
  static const Opened opened = open_library();
  if (opened.api == nullptr) throw std::runtime_error(opened.error);
  return *opened.api;
}

std::string take_text(const TorchLazyCompilerApi& library, TorchLazyBytes& bytes) {
  std::string text(bytes.data != nullptr ? bytes.data : "", bytes.size);
  library.release(&bytes);
  return text;
}

}  // namespace torch_lazy
