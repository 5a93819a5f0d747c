// NVIDIA's own compiler, which needs no GPU, of the package nvidia-cuda-nvrtc that
// tools/requirements.txt has installed beside PyTorch.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "backend/cuda/open_library.h"

namespace torch_lazy::tests {

// What it made of a source for a real architecture.
struct NvrtcResult {
  bool compiled = false;
  std::string log;
  size_t cubin_bytes = 0;
  int registers = 0;      // of a thread
  int spilled_bytes = 0;  // of a thread, stored to memory for want of registers, or as an array
  int shared_bytes = 0;
};

class Nvrtc {
 public:
  // Raises std::runtime_error where the package is not there.
  static const Nvrtc& get() {
    static const Nvrtc& nvrtc = *new Nvrtc(open());
    return nvrtc;
  }

  // `architecture` as "sm_90".
  NvrtcResult compile(const std::string& source, const std::string& architecture) const {
    Program* program = nullptr;
    create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
    const std::string target = "--gpu-architecture=" + architecture;
    const char* const options[] = {target.c_str(), "--std=c++17", "--fmad=false",
                                   "--ptxas-options=-v"};
    NvrtcResult result;
    result.compiled = compile_(program, 4, options) == 0;
    size_t size = 0;
    log_size_(program, &size);
    result.log.resize(size);
    log_(program, result.log.data());
    cubin_size_(program, &result.cubin_bytes);
    destroy_(&program);
    result.registers = number_before(result.log, " registers");
    result.spilled_bytes = number_before(result.log, " bytes stack frame") +
                           number_before(result.log, " bytes spill stores");
    result.shared_bytes = number_before(result.log, " bytes smem");
    return result;
  }

  // The instructions of the virtual machine, "compute_90", of which real ones are made.
  std::string ptx(const std::string& source, const std::string& architecture) const {
    Program* program = nullptr;
    create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
    const std::string target = "--gpu-architecture=" + architecture;
    const char* const options[] = {target.c_str(), "--std=c++17", "--fmad=false"};
    std::string text;
    if (compile_(program, 3, options) == 0) {
      size_t size = 0;
      ptx_size_(program, &size);
      text.resize(size);
      ptx_(program, text.data());
    }
    destroy_(&program);
    return text;
  }

 private:
  struct Program;  // nvrtc.h's

  explicit Nvrtc(void* library) {
    const auto resolve = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    resolve(create_, "nvrtcCreateProgram");
    resolve(compile_, "nvrtcCompileProgram");
    resolve(log_size_, "nvrtcGetProgramLogSize");
    resolve(log_, "nvrtcGetProgramLog");
    resolve(cubin_size_, "nvrtcGetCUBINSize");
    resolve(ptx_size_, "nvrtcGetPTXSize");
    resolve(ptx_, "nvrtcGetPTX");
    resolve(destroy_, "nvrtcDestroyProgram");
  }

  static void* open() {
    for (const std::string& file : cuda::files_in_packages("libnvrtc.so.*"))
      if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    throw std::runtime_error("no libnvrtc beside PyTorch: pip install nvidia-cuda-nvrtc");
  }

  // Of the first place where `what` stands behind a number; 0 where it stands nowhere.
  static int number_before(const std::string& text, const std::string& what) {
    const size_t end = text.find(what);
    if (end == std::string::npos) return 0;
    const size_t begin = text.find_last_not_of("0123456789", end - 1) + 1;
    return begin < end ? std::stoi(text.substr(begin, end - begin)) : 0;
  }

  int (*create_)(Program**, const char* source, const char* name, int headers,
                 const char* const* header_sources, const char* const* header_names);
  int (*compile_)(Program*, int options, const char* const* option_texts);
  int (*log_size_)(Program*, size_t*);
  int (*log_)(Program*, char*);
  int (*cubin_size_)(Program*, size_t*);
  int (*ptx_size_)(Program*, size_t*);
  int (*ptx_)(Program*, char*);
  int (*destroy_)(Program**);
};

}  // namespace torch_lazy::tests
