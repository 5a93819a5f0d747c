// NVRTC, whose images are sources that the emulator's compiler has taken.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <regex>
#include <string>

#include "fake_cuda/cuda_api.h"
#include "fake_cuda/image.h"
#include "simt/program.h"

enum nvrtcResult : int {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
};

struct NvrtcProgram {
  std::string source;
  std::string name;
  std::string log;
  std::string image;   // once compiled
  bool cubin = false;  // for a real architecture, else PTX
};

namespace {

using torch_lazy::fake_cuda::kImageMagic;
namespace simt = torch_lazy::simt;

// Of a kernel, on sm_70 and beyond.
constexpr int64_t kMostParameterBytes = 32764;

constexpr int kArchitectures[] = {75, 80, 90, 100};

constexpr const char* kKnownOptions[] = {"--gpu-architecture=",
                                         "-arch=",
                                         "--std=",
                                         "-std=",
                                         "--fmad=",
                                         "-fmad=",
                                         "--device-as-default-execution-space",
                                         "-default-device",
                                         "--extra-device-vectorization",
                                         "-lineinfo",
                                         "--generate-line-info"};

bool known(const std::string& option) {
  for (const char* each : kKnownOptions) {
    if (option.compare(0, std::strlen(each), each) == 0) return true;
  }
  return false;
}

// What fake_nvrtc_replace() asks for.
std::string& replaced() {
  static auto& text = *new std::string;
  return text;
}
std::string& replacement() {
  static auto& text = *new std::string;
  return text;
}

std::string with_replacement(std::string source) {
  const size_t found = replaced().empty() ? std::string::npos : source.rfind(replaced());
  if (found != std::string::npos) source.replace(found, replaced().size(), replacement());
  return source;
}

// The compiler's "kernel.cu:57:9: error: ...", which the emulator puts a headline above, as NVRTC
// says it: "torch_lazy.cu(57): error: ...".
std::string log_of(const NvrtcProgram& program, const std::string& message) {
  static const std::regex place("kernel\\.cu:([0-9]+):[0-9]+:");
  const size_t log = message.find(":\n") == std::string::npos ? 0 : message.find(":\n") + 2;
  return std::regex_replace(message.substr(log), place, program.name + "($1):");
}

void check_parameters(const simt::Program& program) {
  const simt::Module& module = program.module();
  for (int64_t i = 0; i < module.kernel_count; ++i) {
    int64_t bytes = 0;
    for (int64_t p = 0; p < module.kernels[i].parameter_count; ++p) {
      bytes += module.kernels[i].parameter_bytes[p];
    }
    if (bytes <= kMostParameterBytes) continue;
    throw std::runtime_error(
        fmt::format("kernel {}: formal parameter space overflowed ({} bytes required, max {} bytes "
                    "allowed)",
                    module.kernels[i].name, bytes, kMostParameterBytes));
  }
}

nvrtcResult take(const std::string& text, char* to) {
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}

}  // namespace

FAKE_CUDA_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = int(std::size(kArchitectures));
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), architectures);
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS:
      return "NVRTC_SUCCESS";
    case NVRTC_ERROR_INVALID_INPUT:
      return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
      return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
      return "NVRTC_ERROR_COMPILATION";
  }
  return "NVRTC_ERROR unknown";
}

// Headers are not for the emulator.
FAKE_CUDA_EXPORT nvrtcResult nvrtcCreateProgram(NvrtcProgram** program, const char* source,
                                                const char* name, int headers, const char* const*,
                                                const char* const*) {
  if (source == nullptr || headers != 0) return NVRTC_ERROR_INVALID_INPUT;
  *program = new NvrtcProgram{.source = source, .name = name ? name : "default_program"};
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcDestroyProgram(NvrtcProgram** program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcCompileProgram(NvrtcProgram* program, int options,
                                                 const char* const* texts) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  for (int i = 0; i < options; ++i) {
    const std::string option = texts[i];
    if (!known(option)) {
      program->log = "nvrtc: error: unrecognized option " + option + " found";
      return NVRTC_ERROR_INVALID_OPTION;
    }
    if (option.find("=sm_") != std::string::npos) program->cubin = true;
  }
  try {
    check_parameters(*simt::Program::compile(with_replacement(program->source)));
  } catch (const std::exception& error) {
    program->log = log_of(*program, error.what());
    return NVRTC_ERROR_COMPILATION;
  }
  program->image = kImageMagic + program->source;
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetProgramLogSize(NvrtcProgram* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetProgramLog(NvrtcProgram* program, char* log) {
  return take(program->log, log);
}

// With the zero at its end, as all images here. 0 where a virtual architecture was compiled for.
FAKE_CUDA_EXPORT nvrtcResult nvrtcGetCUBINSize(NvrtcProgram* program, size_t* bytes) {
  *bytes = program->cubin && !program->image.empty() ? program->image.size() + 1 : 0;
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetCUBIN(NvrtcProgram* program, char* cubin) {
  if (!program->cubin || program->image.empty()) return NVRTC_ERROR_INVALID_PROGRAM;
  return take(program->image, cubin);
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetPTXSize(NvrtcProgram* program, size_t* bytes) {
  if (program->image.empty()) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = program->image.size() + 1;
  return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetPTX(NvrtcProgram* program, char* ptx) {
  if (program->image.empty()) return NVRTC_ERROR_INVALID_PROGRAM;
  return take(program->image, ptx);
}

// Every program that is compiled from now on has the other text in the last place of the first, as
// if it were the source. The process may not compile at the same time.
FAKE_CUDA_EXPORT void fake_nvrtc_replace(const char* text, const char* by) {
  replaced() = text;
  replacement() = by;
}
