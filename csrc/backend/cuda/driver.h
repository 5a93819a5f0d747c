// CUDA's driver, libcuda.so.1: the functions that we call, declared here, because nothing of CUDA
// is needed to build. Types and numbers are those of CUDA 12's cuda.h.
//
// Threads: any. The driver is opened once and never closed.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "backend/cuda/open_library.h"

namespace torch_lazy::cuda {

// CUresult. All others are for the driver to name.
using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kNotInitialized = 3;

using Context = struct ContextHandle*;  // CUcontext
using Library = struct LibraryHandle*;  // CUlibrary
using Kernel = struct KernelHandle*;    // CUkernel, which launches take for a CUfunction
using Stream = void*;                   // CUstream
using Graph = struct GraphHandle*;      // CUgraph
using GraphNode = struct NodeHandle*;   // CUgraphNode
using ExecutableGraph = struct ExecutableGraphHandle*;  // CUgraphExec

// CUdevice_attribute
enum class Attribute : int {
  kMultiprocessors = 16,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kSharedBytesOfMultiprocessor = 81,
  kMaxSharedBytesOfBlock = 97,        // of a kernel that asks for them
  kReservedSharedBytesOfBlock = 111,  // for the driver, beside its own
};

// CUfunction_attribute
enum class KernelAttribute : int {
  kSharedBytes = 1,  // that its source declares
  kMaxDynamicSharedBytes = 8,
  kPreferredSharedPercent = 9,  // of what a multiprocessor can have; the rest is its cache
};

// CUDA_KERNEL_NODE_PARAMS of CUDA 12, its second version.
struct KernelNode {
  void* function = nullptr;  // null: `kernel`
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  Kernel kernel = nullptr;
  Context context = nullptr;  // null: the current one
};

// CUstreamCaptureMode: what a thread may not do while streams are captured.
enum class CaptureMode : int {
  kGlobal = 0,   // what could be part of a graph by mistake, while any thread captures
  kRelaxed = 2,  // only what is forbidden to all
};

// Of cuMemHostAlloc: seen by all contexts, and by devices under the address that the host has.
constexpr unsigned kPortable = 1, kDeviceMapped = 2;

struct Driver {
  OpenedLibrary library;
  int version = 0;  // 12040 for CUDA 12.4

  Result (*init)(unsigned flags);
  Result (*get_version)(int* version);
  Result (*error_name)(Result error, const char** name);
  Result (*error_text)(Result error, const char** text);
  Result (*device_count)(int* count);
  Result (*device)(int* device, int ordinal);
  Result (*device_attribute)(int* value, Attribute attribute, int device);
  Result (*device_name)(char* name, int length, int device);
  Result (*current_context)(Context* context);
  Result (*set_current_context)(Context context);
  Result (*retain_primary_context)(Context* context, int device);
  // Need no context: threads that compile have none.
  Result (*load_library)(Library* library, const void* image, void* options, void** values,
                         unsigned count, void* library_options, void** library_values,
                         unsigned library_count);
  Result (*unload_library)(Library library);
  Result (*library_kernel)(Kernel* kernel, Library library, const char* name);
  Result (*kernel_attribute)(int* value, KernelAttribute attribute, Kernel kernel, int device);
  // For all launches of the kernel on the device from then on.
  Result (*set_kernel_attribute)(KernelAttribute attribute, int value, Kernel kernel, int device);
  Result (*allocate_host)(void** address, size_t bytes, unsigned flags);
  // Of the calling thread. `mode` becomes the one before.
  Result (*exchange_capture_mode)(CaptureMode* mode);
  Result (*launch)(Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream stream, void** parameters, void** extra);

  // Graphs. Their calls for kernels copy the parameters' values.
  Result (*create_graph)(Graph* graph, unsigned flags);
  Result (*destroy_graph)(Graph graph);
  Result (*add_kernel_node)(GraphNode* node, Graph graph, const GraphNode* dependencies,
                            size_t dependency_count, const KernelNode* content);
  Result (*instantiate_graph)(ExecutableGraph* executable, Graph graph, unsigned long long flags);
  Result (*destroy_executable_graph)(ExecutableGraph executable);
  Result (*set_kernel_node)(ExecutableGraph executable, GraphNode node, const KernelNode* content);
  Result (*launch_graph)(ExecutableGraph executable, Stream stream);
};

// Opened, not initialized. Raises std::runtime_error where there is none, or one before CUDA 12.
const Driver& driver();

// "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"
std::string describe(Result error);

// Raises c10::Error unless the driver succeeded. `what`: "kernel add_mul cannot be launched".
void check(Result result, const std::string& what);
// Of a call that gives a device work, or makes it ready: raises RefusedWork
// (backend/late_failure.h) where the call alone is to blame.
void check_taken(Result result, const std::string& what);

// A device of the driver, whose numbers are those of PyTorch's devices.
struct DeviceProperties {
  std::string name;      // "NVIDIA H100 80GB HBM3"
  int architecture = 0;  // 90 for compute capability 9.0
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int shared_bytes_of_block = 0;
};

// Initializes the driver. Raises c10::Error where that fails or there is no such device.
DeviceProperties device_properties(c10::DeviceIndex device);

// Lets launches of the kernel have so much dynamic shared memory, at least: plans share kernels.
void allow_shared_bytes(Kernel kernel, unsigned bytes, c10::DeviceIndex device);

// Asks for as much shared memory as blocks of so many threads have that fill a multiprocessor. Left
// alone the driver keeps what the kernels before were given, if one block fits into that.
void prefer_shared_memory(Kernel kernel, unsigned dynamic_bytes, unsigned threads,
                          c10::DeviceIndex device);

// Lets the calling thread load and unload code and allocate while another thread of the program
// captures a graph (`torch.cuda.graph`), which would else fail, and spoil the capture. For calls
// that give streams no work.
class DuringCaptures {
 public:
  DuringCaptures() : relaxed_(exchange()) {}
  ~DuringCaptures() {
    if (relaxed_) exchange();
  }
  DuringCaptures(const DuringCaptures&) = delete;
  DuringCaptures& operator=(const DuringCaptures&) = delete;

 private:
  bool exchange() noexcept;

  CaptureMode mode_ = CaptureMode::kRelaxed;  // the one that is not in force
  const bool relaxed_;
};

// Makes the device's primary context, which is PyTorch's, the calling thread's, unless it has one:
// a guard of PyTorch that has changed the device has made the right one current.
void ensure_context(c10::DeviceIndex device);

}  // namespace torch_lazy::cuda
