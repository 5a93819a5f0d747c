#include "codegen/launch_arguments.h"

#include <cstring>

namespace torch_lazy::codegen {

std::vector<uint8_t> immediate_bytes(const Kernel& kernel) {
  std::vector<uint8_t> bytes;
  for (const Buffer& buffer : kernel.buffers)
    bytes.push_back(buffer.immediate ? uint8_t(bytes_of(buffer.type)) : 0);
  return bytes;
}

std::vector<uint64_t> launch_arguments(const LoweredKernel& lowered,
                                       const std::vector<uint8_t>& immediate_bytes,
                                       c10::ArrayRef<void*> pointers) {
  static_assert(sizeof(void*) == sizeof(uint64_t) && sizeof(double) == sizeof(uint64_t));
  std::vector<uint64_t> arguments(pointers.size() + lowered.sizes.size() + lowered.numbers.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (immediate_bytes[i] > 0)
      std::memcpy(&arguments[i], pointers[i], immediate_bytes[i]);
    else
      arguments[i] = reinterpret_cast<uint64_t>(pointers[i]);
  }
  uint64_t* next = arguments.data() + pointers.size();
  if (!lowered.sizes.empty())
    std::memcpy(next, lowered.sizes.data(), lowered.sizes.size() * sizeof(int64_t));
  next += lowered.sizes.size();
  if (!lowered.numbers.empty())
    std::memcpy(next, lowered.numbers.data(), lowered.numbers.size() * sizeof(double));
  return arguments;
}

}  // namespace torch_lazy::codegen
