// Finds the functions of the compiler library that compiling kernels enters, and prints a linker
// script that puts them side by side.
//
//   link_order LIBRARY SCRIPT KERNEL...
//
// LIBRARY is the compiler library with its symbols. A copy of it whose functions all begin with a
// breakpoint is loaded and compiles the sources KERNEL... for every target; a function that stops
// there is noted and goes on without its breakpoint.

#include <dlfcn.h>
#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/cpu/compiler/compiler_api.h"

namespace {

constexpr uint8_t kBreakpoint = 0xCC;  // int3

struct Function {
  uint64_t address;  // in the library
  uint64_t offset;   // in the file
  std::string name;
};

// Global: for the signal handler, which runs on the threads that compile.
std::vector<char> file;           // the library as it was linked
std::vector<Function> functions;  // by address, each name of it
std::vector<uint8_t> entered;     // by function
uintptr_t base = 0;               // address of the loaded copy

std::vector<char> read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <class T>
const T* at(uint64_t offset) {
  return reinterpret_cast<const T*>(file.data() + offset);
}

void find_functions() {
  const auto* header = at<Elf64_Ehdr>(0);
  const auto* sections = at<Elf64_Shdr>(header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = at<char>(sections[sections[i].sh_link].sh_offset);
    const auto* symbols = at<Elf64_Sym>(sections[i].sh_offset);
    for (size_t j = 0; j < sections[i].sh_size / sizeof(Elf64_Sym); ++j) {
      const Elf64_Sym& symbol = symbols[j];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) continue;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= header->e_shnum) continue;
      const Elf64_Shdr& section = sections[symbol.st_shndx];
      functions.push_back({symbol.st_value, symbol.st_value - section.sh_addr + section.sh_offset,
                           names + symbol.st_name});
    }
  }
  if (functions.empty()) throw std::runtime_error("the library has no symbols");
  std::sort(functions.begin(), functions.end(), [](const Function& a, const Function& b) {
    return a.address < b.address || (a.address == b.address && a.name < b.name);
  });
  entered.resize(functions.size());
}

std::string copy_with_breakpoints(const std::string& path) {
  std::vector<char> copy = file;
  for (const Function& function : functions) copy[function.offset] = static_cast<char>(kBreakpoint);
  std::ofstream stream(path, std::ios::binary);
  stream.write(copy.data(), static_cast<std::streamsize>(copy.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
  return path;
}

// The library's initializers stop here too, before dlopen has returned: where the copy was loaded
// is read off the first address.
void on_breakpoint(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto address = static_cast<uintptr_t>(registers[REG_RIP]) - 1;
  if (base == 0) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0) abort();
    base = reinterpret_cast<uintptr_t>(info.dli_fbase);
  }
  auto function =
      std::lower_bound(functions.begin(), functions.end(), address - base,
                       [](const Function& one, uintptr_t wanted) { return one.address < wanted; });
  if (function == functions.end() || function->address != address - base) abort();
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (mprotect(reinterpret_cast<void*>(address / page * page), page,
               PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    _exit(1);  // a system that forbids it: the library keeps the linker's own order
  *reinterpret_cast<volatile char*>(address) = file[function->offset];
  registers[REG_RIP] = static_cast<greg_t>(address);
  for (; function != functions.end() && function->address == address - base; ++function)
    entered[static_cast<size_t>(function - functions.begin())] = 1;
}

int system_sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  static const auto function =
      reinterpret_cast<int (*)(int, const struct sigaction*, struct sigaction*)>(
          dlsym(RTLD_NEXT, "sigaction"));
  return function(number, action, before);
}

void compile(const TorchLazyCompilerApi& library, TorchLazyTarget target, const std::string& path) {
  TorchLazyBytes error{};
  TorchLazyCompiler* compiler = library.create_compiler(target, &error);
  if (compiler == nullptr) throw std::runtime_error(error.data);
  const std::vector<char> kernel = read(path);
  const int lanes = library.vector_bits(compiler) / 32;
  const std::string source = "#define LAZY_LANES " + std::to_string(lanes) + '\n' +
                             std::string(kernel.begin(), kernel.end());
  const TorchLazyCompileRequest request{source.data(), source.size(), source.size(),
                                        /*time_limit_ns=*/60'000'000'000, TORCH_LAZY_OUTPUT_OBJECT};
  const TorchLazyCompileResult result = library.compile(compiler, &request);
  if (result.succeeded == 0) throw std::runtime_error(path + ": " + result.bytes.data);
  library.destroy_compiler(compiler);
  const auto resolve = [](void*, const char* name) { return dlsym(RTLD_DEFAULT, name); };
  TorchLazyLoader* loader = library.create_loader(resolve, nullptr, &error);
  void* entry = nullptr;
  if (loader == nullptr || library.load(loader, result.bytes.data, result.bytes.size, "kernel",
                                        &entry, &error) == nullptr)
    throw std::runtime_error(path + ": " + error.data);
  library.destroy_loader(loader);
}

void compile_all(const std::string& copy, const std::vector<std::string>& kernels) {
  struct sigaction action {};
  action.sa_sigaction = on_breakpoint;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  system_sigaction(SIGTRAP, &action, nullptr);
  void* loaded = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(copy.c_str());
  if (loaded == nullptr) throw std::runtime_error(dlerror());
  const auto api =
      reinterpret_cast<TorchLazyCompilerApiFunction>(dlsym(loaded, TORCH_LAZY_COMPILER_API_SYMBOL));
  const TorchLazyCompilerApi* library = api(TORCH_LAZY_COMPILER_API_VERSION);
  for (const auto target :
       {TORCH_LAZY_TARGET_HOST, TORCH_LAZY_TARGET_AVX2, TORCH_LAZY_TARGET_BASELINE})
    for (const std::string& kernel : kernels) compile(*library, target, kernel);
}

void write_script(const std::string& path) {
  std::ofstream script(path);
  script << "SECTIONS\n{\n  .text.of_compiles :\n  {\n";
  for (size_t i = 0; i < functions.size(); ++i)
    if (entered[i]) script << "    *(.text." << functions[i].name << ")\n";
  script << "  }\n}\nINSERT BEFORE .text;\n";
  if (!script.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace

// The library's call comes here: its handlers for crashes must not take over the breakpoints.
extern "C" __attribute__((visibility("default"))) int sigaction(int number,
                                                                const struct sigaction* action,
                                                                struct sigaction* before) noexcept {
  if (number != SIGTRAP) return system_sigaction(number, action, before);
  if (before != nullptr) *before = {};
  return 0;
}

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: link_order LIBRARY SCRIPT KERNEL...\n");
    return 2;
  }
  // Takes a second. A compile that hangs must not hang the build, which can go on without an order.
  constexpr unsigned kMostSeconds = 120;
  alarm(kMostSeconds);
  const std::string script = arguments[2];
  int status = 0;
  try {
    file = read(arguments[1]);
    find_functions();
    compile_all(copy_with_breakpoints(script + ".so"), {arguments + 3, arguments + count});
    write_script(script);
    std::printf("%td of %zu functions\n", std::count(entered.begin(), entered.end(), 1),
                entered.size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "link_order: %s\n", error.what());
    status = 1;
  }
  // The copy's destructors would only be noted.
  std::fflush(nullptr);
  _exit(status);
}
