// NVRTC, CUDA's compiler at run time: from a program's source to an image that the driver loads.
// Declared here, because nothing of CUDA is needed to build.
//
// Threads: any; programs of several threads are compiled at the same time. The library is opened
// once and never closed.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace torch_lazy::cuda {

struct NvrtcLibrary {
  std::string file;
  int major = 0, minor = 0;  // of the CUDA that it is from
};

// Opens the library: what the process has loaded already, else the newest that the driver is not
// too old for. Raises std::runtime_error where there is none.
NvrtcLibrary nvrtc_library();

// What is compiled for a device of architecture 90: "sm_90", machine code, or code of the nearest
// older device that it runs as well; where NVRTC knows none of its generation "compute_90" or
// older, which the driver translates.
std::string compiled_architecture(int device_architecture);
// The same of a compiler that knows these architectures; empty where all are newer.
std::string nearest_architecture(int device, const std::vector<int>& known);

// All that an image follows from besides its source: NVRTC's version, the options, the
// architecture.
std::string describe_compiler(const std::string& architecture);

// A program does not compile, with NVRTC's messages.
struct CompileError : std::runtime_error {
  CompileError(const std::string& message, size_t line_of_first)
      : std::runtime_error(message), line(line_of_first) {}
  size_t line;  // of the program, at which the first error is, from 1; 0 where that is not said
};

// The image of a program for an architecture as above. Raises CompileError where it does not
// compile.
std::string compile_program(const std::string& source, const std::string& architecture);

}  // namespace torch_lazy::cuda
