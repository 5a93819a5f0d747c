#include "simt/program.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "backend/cpu/compiler_library.h"
#include "simt/compiler/simt_compiler.h"
#include "simt/device_functions.h"

namespace torch_lazy::simt {
namespace {

constexpr const char* kLibrary = "libtorch_lazy_simt_compiler.so";

struct SimtCompiler {
  SimtCompileFunction compile = nullptr;
  SimtReleaseFunction release = nullptr;
};

// Beside the file that holds this code.
SimtCompiler open_compiler() {
  Dl_info info;
  std::string path = kLibrary;
  if (dladdr(reinterpret_cast<void*>(&open_compiler), &info) != 0) {
    const std::string own = info.dli_fname;
    path = own.substr(0, own.rfind('/') + 1) + kLibrary;
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(fmt::format(
        "the emulator's compiler cannot be loaded: {}. Build it: ninja -C build torch_lazy_tests",
        dlerror()));
  }
  return {reinterpret_cast<SimtCompileFunction>(dlsym(library, "simt_compile")),
          reinterpret_cast<SimtReleaseFunction>(dlsym(library, "simt_release"))};
}

std::string object_of(const std::string& source) {
  static const SimtCompiler compiler = open_compiler();
  TorchLazyBytes result{};
  const bool succeeded = compiler.compile(source.data(), source.size(), &result) != 0;
  const std::string bytes(result.data, result.size);
  compiler.release(&result);
  if (!succeeded) throw std::runtime_error("the emulator cannot compile the kernel:\n" + bytes);
  return bytes;
}

void* resolve(void*, const char* name) {
  if (void* const function = device_function(name)) return function;
  return dlsym(RTLD_DEFAULT, name);
}

// What it loads stays.
const Module* load(const std::string& object) {
  const TorchLazyCompilerApi& library = compiler_library();
  TorchLazyBytes error{};
  static TorchLazyLoader* const loader = library.create_loader(resolve, nullptr, &error);
  void* module = nullptr;
  if (loader == nullptr || library.load(loader, object.data(), object.size(), kModuleSymbol,
                                        &module, &error) == nullptr) {
    throw std::runtime_error("the emulator cannot load the kernel: " + take_text(library, error));
  }
  return static_cast<const Module*>(module);
}

}  // namespace

Program::Program(const std::string& source, const Module* module) : module_(module) {
  std::istringstream stream(source);
  for (std::string line; std::getline(stream, line);) lines_.push_back(std::move(line));
}

std::shared_ptr<const Program> Program::compile(const std::string& source) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Program>> programs;  // under the mutex
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const Program>& program = programs[source];
  if (program == nullptr) program.reset(new Program(source, load(object_of(source))));
  return program;
}

const KernelEntry& Program::kernel(const std::string& name) const {
  std::string names;
  for (int64_t i = 0; i < module_->kernel_count; ++i) {
    if (name == module_->kernels[i].name) return module_->kernels[i];
    names += std::string(names.empty() ? "" : ", ") + module_->kernels[i].name;
  }
  throw std::invalid_argument(fmt::format("there is no kernel {}; the source has {}", name, names));
}

std::string Program::line(const Site& site) const {
  std::string text;
  if (site.line > 0 && static_cast<size_t>(site.line) <= lines_.size()) {
    text = lines_[site.line - 1];
    text.erase(0, text.find_first_not_of(' '));
  }
  return fmt::format("line {}: {}", site.line, text);
}

}  // namespace torch_lazy::simt
