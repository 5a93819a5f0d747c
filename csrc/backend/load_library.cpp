#include "backend/load_library.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "backend/backend_library.h"

namespace torch_lazy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTorchVersion = TORCH_LAZY_TORCH_VERSION;

// "2.13" of "2.13.0+cpu".
std::string_view minor_version(std::string_view version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

// What is wrong, and what to do; empty where nothing is.
std::string complaint(const std::string& name, const BackendLibrary& library) {
  if (library.interface_version != kBackendInterfaceVersion)
    return fmt::format(
        "it was built for version {} of the interface of backends and this torch_lazy has version "
        "{}: build it against this torch_lazy",
        library.interface_version, kBackendInterfaceVersion);
  if (minor_version(library.torch_version) != minor_version(kTorchVersion))
    return fmt::format(
        "it was built against torch {} and this torch_lazy against torch {}: build it against "
        "torch {}",
        library.torch_version, kTorchVersion, minor_version(kTorchVersion));
  if (library.name != name)
    return fmt::format(
        "the library calls its backend '{}' and its entry point '{}': give them the same name",
        library.name, name);
  return "";
}

}  // namespace

void load_backend_library(const std::string& name, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error(
        fmt::format("backend '{}' cannot be loaded from '{}': {}", name, file, why));
  };
  // Without a folder dlopen() would search the system's.
  const fs::path path = fs::absolute(file);
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown))
    refuse("there is no such file: install the package that brings it again");
  // Its symbols are its own, and all that it needs must be there now, not at the first call.
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    refuse(fmt::format(
        "the system says '{}': build it against this torch_lazy and torch {}, and install the "
        "libraries that it needs",
        dlerror(), kTorchVersion));
  const void* const symbol = dlsym(opened, kBackendLibrarySymbol);
  if (symbol == nullptr)
    refuse(fmt::format("it does not export '{}': it must say TORCH_LAZY_BACKEND(\"{}\", ...) once",
                       kBackendLibrarySymbol, name));
  const auto& library = *static_cast<const BackendLibrary*>(symbol);
  if (const std::string why = complaint(name, library); !why.empty()) refuse(why);
  register_backend(name, library.make, path.string());
}

}  // namespace torch_lazy
