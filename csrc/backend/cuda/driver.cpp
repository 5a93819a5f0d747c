#include "backend/cuda/driver.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>

#include "backend/late_failure.h"

namespace torch_lazy::cuda {
namespace {

constexpr int kOldestVersion = 12000;  // has cuLibraryLoadData
constexpr unsigned kSharedBytesOfAnyKernel = 48 << 10;

// CUDA_ERROR_INVALID_VALUE, _OUT_OF_MEMORY, _INVALID_IMAGE, _NO_BINARY_FOR_GPU, _INVALID_PTX,
// _UNSUPPORTED_PTX_VERSION, _LAUNCH_OUT_OF_RESOURCES, _NOT_SUPPORTED: of the call alone. Others may
// be of work that was given to the device before.
constexpr std::array<Result, 8> kRefusals{1, 2, 200, 209, 218, 222, 701, 801};

Driver open_driver() {
  Driver driver;
  driver.library = open_library("CUDA's driver", {"libcuda.so.1"});
  const auto find = [&](const char* name, auto& function) {
    resolve(driver.library, name, function);
  };
  find("cuInit", driver.init);
  find("cuDriverGetVersion", driver.get_version);
  if (driver.get_version(&driver.version) != kSuccess || driver.version < kOldestVersion)
    throw std::runtime_error(
        fmt::format("{} is of CUDA {}.{}: a driver of CUDA 12 or later is needed",
                    driver.library.file, driver.version / 1000, driver.version % 1000 / 10));
  find("cuGetErrorName", driver.error_name);
  find("cuGetErrorString", driver.error_text);
  find("cuDeviceGetCount", driver.device_count);
  find("cuDeviceGet", driver.device);
  find("cuDeviceGetAttribute", driver.device_attribute);
  find("cuDeviceGetName", driver.device_name);
  find("cuCtxGetCurrent", driver.current_context);
  find("cuCtxSetCurrent", driver.set_current_context);
  find("cuDevicePrimaryCtxRetain", driver.retain_primary_context);
  find("cuLibraryLoadData", driver.load_library);
  find("cuLibraryUnload", driver.unload_library);
  find("cuLibraryGetKernel", driver.library_kernel);
  find("cuKernelGetAttribute", driver.kernel_attribute);
  find("cuKernelSetAttribute", driver.set_kernel_attribute);
  find("cuMemHostAlloc", driver.allocate_host);
  find("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode);
  find("cuLaunchKernel", driver.launch);
  find("cuGraphCreate", driver.create_graph);
  find("cuGraphDestroy", driver.destroy_graph);
  find("cuGraphAddKernelNode_v2", driver.add_kernel_node);
  find("cuGraphInstantiateWithFlags", driver.instantiate_graph);
  find("cuGraphExecDestroy", driver.destroy_executable_graph);
  find("cuGraphExecKernelNodeSetParams_v2", driver.set_kernel_node);
  find("cuGraphLaunch", driver.launch_graph);
  return driver;
}

int handle_of(c10::DeviceIndex ordinal) {
  int device = 0;
  check(driver().device(&device, ordinal), fmt::format("there is no device cuda:{}", int(ordinal)));
  return device;
}

int attribute(Attribute which, int device) {
  int value = 0;
  check(driver().device_attribute(&value, which, device), "a property of a device is not known");
  return value;
}

// Never released: tensors may outlive whatever would.
Context primary_context(c10::DeviceIndex device) {
  static std::array<Context, 64> contexts{};
  static std::mutex mutex;  // guards `contexts`
  const std::lock_guard<std::mutex> lock(mutex);
  Context& context = contexts.at(size_t(device));
  if (!context)
    check(driver().retain_primary_context(&context, handle_of(device)),
          fmt::format("there is no context for device cuda:{}", int(device)));
  return context;
}

}  // namespace

const Driver& driver() {
  static const Driver& opened = *new Driver(open_driver());
  return opened;
}

std::string describe(Result error) {
  const char *name = nullptr, *text = nullptr;
  if (driver().error_name(error, &name) != kSuccess || !name) return fmt::format("error {}", error);
  if (driver().error_text(error, &text) != kSuccess || !text) return name;
  return fmt::format("{} ({})", name, text);
}

void check(Result result, const std::string& what) {
  if (result == kSuccess) [[likely]]
    return;
  TORCH_CHECK(result != kNotInitialized, what, ": ", describe(result),
              ". A child of fork() cannot use a device that its parent has used: start processes "
              "with torch.multiprocessing's method 'spawn'");
  TORCH_CHECK(false, what, ": ", describe(result));
}

void check_taken(Result result, const std::string& what) {
  if (std::ranges::find(kRefusals, result) != kRefusals.end()) [[unlikely]]
    throw RefusedWork({__func__, __FILE__, uint32_t(__LINE__)}, what + ": " + describe(result));
  check(result, what);
}

DeviceProperties device_properties(c10::DeviceIndex ordinal) {
  check(driver().init(0), "CUDA's driver cannot be initialized");
  int count = 0;
  check(driver().device_count(&count), "devices cannot be counted");
  TORCH_CHECK(ordinal >= 0 && ordinal < count, "there is no device cuda:", int(ordinal),
              ": the driver has ", count);
  const int device = handle_of(ordinal);
  std::array<char, 256> name{};
  check(driver().device_name(name.data(), int(name.size()), device), "a device has no name");
  DeviceProperties properties;
  properties.name = name.data();
  properties.architecture = 10 * attribute(Attribute::kComputeCapabilityMajor, device) +
                            attribute(Attribute::kComputeCapabilityMinor, device);
  properties.multiprocessors = attribute(Attribute::kMultiprocessors, device);
  properties.threads_per_multiprocessor =
      attribute(Attribute::kMaxThreadsPerMultiprocessor, device);
  properties.shared_bytes_of_block = attribute(Attribute::kMaxSharedBytesOfBlock, device);
  return properties;
}

void allow_shared_bytes(Kernel kernel, unsigned bytes, c10::DeviceIndex device) {
  static std::mutex mutex;  // held from reading what is allowed to raising it
  const std::lock_guard<std::mutex> lock(mutex);
  int allowed = 0;
  check(driver().kernel_attribute(&allowed, KernelAttribute::kMaxDynamicSharedBytes, kernel,
                                  handle_of(device)),
        "the shared memory of a kernel is not known");
  // What drivers say is allowed before any was asked for is with or without what is declared.
  int declared = 0;
  check(driver().kernel_attribute(&declared, KernelAttribute::kSharedBytes, kernel,
                                  handle_of(device)),
        "the shared memory of a kernel is not known");
  if (bytes + unsigned(declared) <= kSharedBytesOfAnyKernel) return;
  const bool was_raised = unsigned(allowed) > kSharedBytesOfAnyKernel;
  if (was_raised && unsigned(allowed) >= bytes) return;
  check_taken(driver().set_kernel_attribute(KernelAttribute::kMaxDynamicSharedBytes, int(bytes),
                                            kernel, handle_of(device)),
              fmt::format("a kernel cannot have {} bytes of shared memory", bytes));
}

// Less is slower and not wrong, so that what the driver refuses is not told.
void prefer_shared_memory(Kernel kernel, unsigned dynamic_bytes, unsigned threads,
                          c10::DeviceIndex ordinal) {
  const int device = handle_of(ordinal);
  int bytes = 0;
  if (driver().kernel_attribute(&bytes, KernelAttribute::kSharedBytes, kernel, device) != kSuccess)
    return;
  bytes += int(dynamic_bytes);
  if (bytes == 0) return;
  bytes += attribute(Attribute::kReservedSharedBytesOfBlock, device);
  const int64_t blocks = attribute(Attribute::kMaxThreadsPerMultiprocessor, device) / int(threads);
  const int64_t most = attribute(Attribute::kSharedBytesOfMultiprocessor, device);
  const int64_t percent = std::min<int64_t>((blocks * bytes * 100 + most - 1) / most, 100);
  static_cast<void>(driver().set_kernel_attribute(KernelAttribute::kPreferredSharedPercent,
                                                  int(percent), kernel, device));
}

// It fails only in a process that cannot use the driver, whose next call says so.
bool DuringCaptures::exchange() noexcept {
  return driver().exchange_capture_mode(&mode_) == kSuccess;
}

void ensure_context(c10::DeviceIndex device) {
  Context current = nullptr;
  check(driver().current_context(&current), "the current context is not known");
  if (current) return;
  check(driver().set_current_context(primary_context(device)),
        fmt::format("device cuda:{} cannot be used", int(device)));
}

}  // namespace torch_lazy::cuda
