#include "codegen/launch_arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace torch_lazy::codegen {

ArgumentForms argument_forms(const Kernel& kernel) {
  ArgumentForms forms;
  for (const Buffer& buffer : kernel.buffers)
    forms.immediate_bytes.push_back(buffer.immediate ? uint8_t(bytes_of(buffer.type)) : 0);
  forms.floats = floats_among_numbers(kernel);
  return forms;
}

std::vector<bool> floats_among_numbers(const Kernel& kernel) {
  std::vector<bool> floats(kernel.number_slots, true);
  for (const Expr& expr : kernel.exprs)
    if (expr.op == Op::kNumber && expr.type != Type::kFloat) floats[expr.value.value] = false;
  return floats;
}

uint64_t number_field(double number, bool as_float) {
  if (!as_float) return std::bit_cast<uint64_t>(number);
  return std::bit_cast<uint32_t>(float(number));  // little-endian: the first 4 bytes
}

std::vector<uint64_t> launch_arguments(const LoweredKernel& lowered, const ArgumentForms& forms,
                                       c10::ArrayRef<void*> pointers) {
  static_assert(sizeof(void*) == sizeof(uint64_t));
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
      if (forms.immediate_bytes[i] > 0)
        std::memcpy(next, pointer, forms.immediate_bytes[i]);
      else
        *next = reinterpret_cast<uint64_t>(pointer);
    }
    append(lowered.sizes, instance * sizes, sizes);
    for (size_t i = 0; i < numbers; ++i)
      *next++ = number_field(lowered.numbers[instance * numbers + i], forms.floats[i]);
  }
  append(lowered.ends, 0, lowered.ends.size());
  return arguments;
}

}  // namespace torch_lazy::codegen
