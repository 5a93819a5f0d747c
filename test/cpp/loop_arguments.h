// What a kernel of the loop IR is called with in tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "codegen/divide.h"
#include "codegen/loop_ir.h"
#include "codegen/thread_loop.h"
#include "loop_numbers.h"

namespace torch_lazy::codegen {

// Elements of one type, in memory that is not aligned to vectors.
struct Elements {
  Type type = Type::kFloat;
  std::vector<char> bytes;

  Elements(Type type, int64_t count) : type(type), bytes(count * bytes_of(type)) {}
  int64_t count() const { return static_cast<int64_t>(bytes.size()) / bytes_of(type); }
  Number at(int64_t i) const { return read_number(type, bytes.data(), i); }
  void set(int64_t i, Number number) { write_number(type, bytes.data(), i, number); }
};

inline Elements elements_of(Type type, const std::vector<double>& numbers) {
  Elements elements(type, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    elements.set(
        static_cast<int64_t>(i),
        {.real = numbers[i], .integer = is_floating(type) ? 0 : static_cast<int64_t>(numbers[i])});
  }
  return elements;
}

// Between -2 and 2 where floating, else small integers of either sign as far as the type has them.
inline Elements random_elements(Type type, int64_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(-2, 2);
  Elements elements(type, count);
  for (int64_t i = 0; i < count; ++i) {
    elements.set(i, {.real = real(random), .integer = static_cast<int64_t>(random() % 15) - 7});
  }
  return elements;
}

struct KernelArguments {
  std::vector<Elements> buffers;
  std::vector<int64_t> sizes;
  std::vector<double> numbers;
  bool aligned = false;  // buffers begin at a cache line, else in the middle of one
};

inline int64_t value_of(Size size, const KernelArguments& arguments) {
  return size.slot ? arguments.sizes[size.value] : size.value;
}

inline int64_t product_of(const std::vector<Size>& extents, const KernelArguments& arguments) {
  int64_t product = 1;
  for (Size extent : extents) product *= value_of(extent, arguments);
  return product;
}

inline int64_t work_item_count(const Kernel& kernel, const KernelArguments& arguments) {
  std::vector<Size> parallel = kernel.parallel;
  if (kernel.jam.steps > 1) {
    Size& jammed = parallel[size_t(kernel.jam.dimension)];
    jammed = Size::constant(divided_up(value_of(jammed, arguments), kernel.jam.steps));
  }
  if (kernel.axis == Axis::kReduction || parallel.empty()) return product_of(parallel, arguments);
  if (kernel.thread_loop.transposed >= 0) return transposed_work_items(kernel, arguments.sizes);
  std::vector<Size> others(parallel.begin(), parallel.end() - 1);
  const int64_t block = value_of(kernel.block, arguments);
  const int64_t last = value_of(kernel.parallel.back(), arguments);
  return product_of(others, arguments) * ((last + block - 1) / block);
}

}  // namespace torch_lazy::codegen
