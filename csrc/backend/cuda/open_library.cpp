#include "backend/cuda/open_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dlfcn.h>
#include <glob.h>
#include <link.h>

#include <stdexcept>

namespace torch_lazy::cuda {
namespace {

constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

// The folder in which PyTorch's package lies; empty where it is not found.
std::string site_packages() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const std::string path = info->dlpi_name;
        const size_t at = path.rfind("/torch/lib/");
        if (at == std::string::npos) return 0;
        *static_cast<std::string*>(result) = path.substr(0, at);
        return 1;
      },
      &found);
  return found;
}

std::string file_of(void* handle, const std::string& otherwise) {
  link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0] != '\0';
  return known ? map->l_name : otherwise;
}

}  // namespace

// NVIDIA's packages have had a folder each, and one for all.
std::vector<std::string> files_in_packages(const std::string& pattern) {
  std::vector<std::string> files;
  const std::string folder = site_packages();
  if (folder.empty()) return files;
  const std::string everywhere = folder + "/nvidia/*/lib/" + pattern;
  glob_t matches;
  if (glob(everywhere.c_str(), 0, nullptr, &matches) == 0)
    files.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  return files;
}

OpenedLibrary open_library(const std::string& what, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (void* const handle = dlopen(name.c_str(), kFlags | RTLD_NOLOAD))
      return {handle, file_of(handle, name)};
  std::vector<std::string> errors;
  const auto open = [&](const std::string& file) {
    void* const handle = dlopen(file.c_str(), kFlags);
    if (!handle) errors.emplace_back(dlerror());
    return handle;
  };
  for (const std::string& name : names)
    for (const std::string& file : files_in_packages(name))
      if (void* const handle = open(file)) return {handle, file_of(handle, file)};
  for (const std::string& name : names)
    if (void* const handle = open(name)) return {handle, file_of(handle, name)};
  throw std::runtime_error(fmt::format("{} cannot be opened as {}: {}", what,
                                       fmt::join(names, ", "), fmt::join(errors, "; ")));
}

void* find_function(const OpenedLibrary& library, const char* name) {
  return dlsym(library.handle, name);
}

void raise_missing_function(const OpenedLibrary& library, const char* name) {
  throw std::runtime_error(fmt::format("{} has no function {}: it is too old", library.file, name));
}

}  // namespace torch_lazy::cuda
