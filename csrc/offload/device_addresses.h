// Where the device finds tensors, while work on it is submitted.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>

#include "base/api.h"

namespace torch_lazy {

// What is done to the bytes of a storage.
enum class Access : uint8_t {
  kNone,  // nothing: an operator that makes views
  kRead,
  kWrite,      // some, or all, after reading
  kOverwrite,  // all, without reading
};

inline bool reads(Access access) {
  return access == Access::kRead || access == Access::kWrite;
}
inline bool writes(Access access) {
  return access == Access::kWrite || access == Access::kOverwrite;
}

// From the first address to the submission of the work that uses it: until it is destroyed no
// operator on the host takes over what the addresses are of. Does nothing for devices that PyTorch
// has kernels for.
class TORCH_LAZY_API DeviceAddresses {
 public:
  DeviceAddresses();

  // Of the first element of a tensor that the work accesses so. That of a tensor on a device with
  // kernels is its data pointer. `cause` is counted where bytes move.
  void* of(const at::Tensor& tensor, Access access, const char* cause = "a window");

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace torch_lazy
