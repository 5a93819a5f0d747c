#include "backend/cpu/compiler_library.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
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

// Global: where the library's segments begin; there is one library.
std::atomic<const link_map*> loaded{nullptr};

// Of a segment that cannot be written, so that no page of it is the process's own.
void drop_pages(const dl_phdr_info& library, const ElfW(Phdr) & segment) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = (library.dlpi_addr + segment.p_vaddr) / page * page;
  const uintptr_t end = library.dlpi_addr + segment.p_vaddr + segment.p_filesz;
  madvise(reinterpret_cast<void*>(start), end - start, MADV_DONTNEED);
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
    if (api != nullptr) {
      link_map* map = nullptr;
      if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0) loaded = map;
      return {api, ""};
    }
    why = fmt::format("it does not offer version {} of the interface",
                      TORCH_LAZY_COMPILER_API_VERSION);
  } else {
    why = dlerror();
  }
  return {
      nullptr,
      fmt::format("the kernel compiler {} cannot be loaded: {}. Without it the CPU backend "
                  "falls back to the reference backend, which is correct but compiles no kernels. "
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

std::string missing_compiler_library() {
  const std::string path = library_path();
  if (access(path.c_str(), R_OK) == 0) return "";
  return fmt::format(
      "its compiler {} is not there: install the static libraries of LLVM and Clang 19 (Debian: "
      "llvm-19-dev libclang-19-dev libpolly-19-dev zlib1g-dev libzstd-dev) and build torch_lazy "
      "again, or set {} to the path of one",
      path, kVariable);
}

void trim_compiler_library() {
  if (loaded == nullptr) return;
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void*) {
        const link_map* map = loaded;
        if (library->dlpi_addr != map->l_addr || map->l_name != std::string(library->dlpi_name))
          return 0;
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = library->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0)
            drop_pages(*library, segment);
        }
        return 1;
      },
      nullptr);
}

std::string take_text(const TorchLazyCompilerApi& library, TorchLazyBytes& bytes) {
  std::string text(bytes.data != nullptr ? bytes.data : "", bytes.size);
  library.release(&bytes);
  return text;
}

}  // namespace torch_lazy
