#include "backend/cuda/nvrtc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "backend/cuda/driver.h"
#include "backend/cuda/open_library.h"

namespace torch_lazy::cuda {
namespace {

using Program = struct ProgramHandle*;  // nvrtcProgram

struct Nvrtc {
  OpenedLibrary library;
  int major = 0, minor = 0;

  int (*version)(int* major, int* minor);
  const char* (*error_text)(int result);
  int (*create)(Program*, const char* source, const char* name, int headers,
                const char* const* header_sources, const char* const* header_names);
  int (*destroy)(Program*);
  int (*compile)(Program, int options, const char* const* option_texts);
  int (*log_size)(Program, size_t* bytes);
  int (*log)(Program, char* text);
  int (*cubin_size)(Program, size_t* bytes);
  int (*cubin)(Program, char* image);
  int (*ptx_size)(Program, size_t* bytes);
  int (*ptx)(Program, char* image);
  int (*architecture_count)(int* count);
  int (*architectures)(int* architectures);  // 90 for sm_90, ascending
};

constexpr const char* kProgramName = "torch_lazy.cu";
constexpr int kOldestMajor = 12;
constexpr int kOldestArchitecture = 70;  // has parameters that are constants of the whole grid

// The newest first of those whose images the driver takes.
std::vector<std::string> library_names() {
  std::vector<std::string> names;
  for (int major = driver().version / 1000; major >= kOldestMajor; --major)
    names.push_back(fmt::format("libnvrtc.so.{}", major));
  names.emplace_back("libnvrtc.so");
  return names;
}

Nvrtc open_nvrtc() {
  Nvrtc nvrtc;
  nvrtc.library = open_library("NVRTC, CUDA's compiler", library_names());
  const auto find = [&](const char* name, auto& function) {
    resolve(nvrtc.library, name, function);
  };
  find("nvrtcVersion", nvrtc.version);
  find("nvrtcGetErrorString", nvrtc.error_text);
  find("nvrtcCreateProgram", nvrtc.create);
  find("nvrtcDestroyProgram", nvrtc.destroy);
  find("nvrtcCompileProgram", nvrtc.compile);
  find("nvrtcGetProgramLogSize", nvrtc.log_size);
  find("nvrtcGetProgramLog", nvrtc.log);
  find("nvrtcGetCUBINSize", nvrtc.cubin_size);
  find("nvrtcGetCUBIN", nvrtc.cubin);
  find("nvrtcGetPTXSize", nvrtc.ptx_size);
  find("nvrtcGetPTX", nvrtc.ptx);
  find("nvrtcGetNumSupportedArchs", nvrtc.architecture_count);
  find("nvrtcGetSupportedArchs", nvrtc.architectures);
  nvrtc.version(&nvrtc.major, &nvrtc.minor);
  return nvrtc;
}

const Nvrtc& nvrtc() {
  static const Nvrtc& opened = *new Nvrtc(open_nvrtc());
  return opened;
}

void check_result(int result, const char* what) {
  if (result != 0)
    throw std::runtime_error(fmt::format("NVRTC cannot {}: {}", what, nvrtc().error_text(result)));
}

// A product and a sum of two operations are no single rounding: `b * b - 4 * a * c`, which is 0 in
// eager, would be a little less. Where one of PyTorch's operators has it, the source says so.
constexpr std::array kOptions{"--std=c++17", "--fmad=false"};

std::string architecture_option(const std::string& architecture) {
  return "--gpu-architecture=" + architecture;
}

bool is_machine_code(std::string_view architecture) {
  return architecture.starts_with("sm_");
}

std::string log_of(Program program) {
  size_t bytes = 0;
  check_result(nvrtc().log_size(program, &bytes), "tell its messages");
  std::string log(bytes, '\0');
  check_result(nvrtc().log(program, log.data()), "tell its messages");
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

std::string image_of(Program program, bool machine_code) {
  size_t bytes = 0;
  check_result((machine_code ? nvrtc().cubin_size : nvrtc().ptx_size)(program, &bytes),
               "make an image");
  std::string image(bytes, '\0');
  check_result((machine_code ? nvrtc().cubin : nvrtc().ptx)(program, image.data()),
               "make an image");
  return image;
}

// "torch_lazy.cu(57): error: ...", behind warnings of the same form.
size_t line_of_first_error(const std::string& log) {
  const std::string place = std::string(kProgramName) + "(";
  for (size_t at = log.find(place); at != std::string::npos; at = log.find(place, at + 1)) {
    char* behind = nullptr;
    const size_t line = std::strtoull(log.c_str() + at + place.size(), &behind, 10);
    if (std::string_view(behind).starts_with("): error")) return line;
  }
  return 0;
}

}  // namespace

NvrtcLibrary nvrtc_library() {
  return {nvrtc().library.file, nvrtc().major, nvrtc().minor};
}

std::string compiled_architecture(int device_architecture) {
  if (device_architecture < kOldestArchitecture)
    throw std::runtime_error(
        fmt::format("the device has compute capability {}.{}: kernels need {}.{} or later",
                    device_architecture / 10, device_architecture % 10, kOldestArchitecture / 10,
                    kOldestArchitecture % 10));
  int count = 0;
  check_result(nvrtc().architecture_count(&count), "list architectures");
  std::vector<int> known(static_cast<size_t>(count));
  check_result(nvrtc().architectures(known.data()), "list architectures");
  const std::string architecture = nearest_architecture(device_architecture, known);
  if (architecture.empty())
    throw std::runtime_error(
        fmt::format("{} compiles for no device as old as compute capability {}.{}",
                    nvrtc().library.file, device_architecture / 10, device_architecture % 10));
  return architecture;
}

std::string nearest_architecture(int device, const std::vector<int>& known) {
  // Machine code of an embedded device (Xavier, Orin, Thor, which was 10.1 before CUDA 13) runs on
  // no other device of its generation, nor others' on it.
  constexpr std::array kEmbedded{72, 87, 88, 101, 110};
  const auto is_embedded = [&](int each) {
    return std::ranges::find(kEmbedded, each) != kEmbedded.end();
  };
  int nearest = 0;
  for (const int each : known)
    if (each == device || (each < device && !is_embedded(each))) nearest = std::max(nearest, each);
  if (nearest == 0) return "";
  const bool runs_there =
      nearest == device || (nearest / 10 == device / 10 && !is_embedded(device));
  return fmt::format("{}_{}", runs_there ? "sm" : "compute", nearest);
}

std::string describe_compiler(const std::string& architecture) {
  return fmt::format("NVRTC {}.{} {} {}", nvrtc().major, nvrtc().minor, architecture,
                     fmt::join(kOptions, " "));
}

std::string compile_program(const std::string& source, const std::string& architecture) {
  Program created = nullptr;
  check_result(nvrtc().create(&created, source.c_str(), kProgramName, 0, nullptr, nullptr),
               "take a program");
  const std::unique_ptr<Program, void (*)(Program*)> program(
      &created, [](Program* made) { nvrtc().destroy(made); });
  const std::string target = architecture_option(architecture);
  std::vector<const char*> options(kOptions.begin(), kOptions.end());
  options.push_back(target.c_str());
  const int result = nvrtc().compile(created, static_cast<int>(options.size()), options.data());
  if (result != 0) {
    const std::string log = log_of(created);
    throw CompileError(fmt::format("{} for {}: {}", nvrtc().error_text(result), architecture, log),
                       line_of_first_error(log));
  }
  return image_of(created, is_machine_code(architecture));
}

}  // namespace torch_lazy::cuda
