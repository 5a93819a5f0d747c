#include "codegen/launch_arguments.h"

#include <algorithm>
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
  const size_t instances = std::max<size_t>(lowered.ends.size(), 1);
  const size_t buffers = pointers.size() / instances, sizes = lowered.sizes.size() / instances,
               numbers = lowered.numbers.size() / instances;
  std::vector<uint64_t> arguments(pointers.size() + lowered.sizes.size() + lowered.numbers.size() +
                                  lowered.ends.size());
  uint64_t* next = arguments.data();
  const auto append = [&](const auto& values, size_t begin, size_t count) {
    if (count > 0) std::memcpy(next, values.data() + begin, count * sizeof(uint64_t));
    next += count;
  };
  for (size_t instance = 0; instance < instances; ++instance) {
    for (size_t i = 0; i < buffers; ++i, ++next) {
      void* const pointer = pointers[instance * buffers + i];
      if (immediate_bytes[i] > 0)
        std::memcpy(next, pointer, immediate_bytes[i]);
      else
        *next = reinterpret_cast<uint64_t>(pointer);
    }
    append(lowered.sizes, instance * sizes, sizes);
    append(lowered.numbers, instance * numbers, numbers);
  }
  append(lowered.ends, 0, lowered.ends.size());
  return arguments;
}

}  // namespace torch_lazy::codegen
