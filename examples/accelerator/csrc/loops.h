#pragma once

#include <torch_lazy/backend/operator_table.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

/// What the device's commands are made of: one strided loop, and arguments that broadcast.
namespace accelerator {

using Extents = std::vector<std::int64_t>;

/// All points of `sizes`. Every operand has its strides, in elements, along each dimension.
template <std::size_t operands>
struct Loop {
  using Offsets = std::array<std::int64_t, operands>;

  Extents sizes;
  std::array<Extents, operands> strides;

  /// Calls `body` with the operands' offsets at each point, the last dimension fastest.
  template <typename Body>
  void run(const Body& body) const {
    run(0, Offsets{}, body);
  }

 private:
  template <typename Body>
  void run(std::size_t dimension, Offsets at, const Body& body) const {
    if (dimension == sizes.size()) return body(at);
    Offsets step;
    for (std::size_t k = 0; k < operands; ++k) step[k] = strides[k][dimension];
    const bool innermost = dimension + 1 == sizes.size();
    for (std::int64_t i = 0; i < sizes[dimension]; ++i) {
      innermost ? body(at) : run(dimension + 1, at, body);
      for (std::size_t k = 0; k < operands; ++k) at[k] += step[k];
    }
  }
};

/// The argument's strides along the dimensions of `sizes`, to which it is broadcast.
inline Extents broadcast(const torch_lazy::OperatorArgument& argument, const Extents& sizes) {
  Extents strides(sizes.size(), 0);
  if (argument.tensors.empty()) return strides;  // A number does not move.
  const auto& tensor = argument.tensors[0];
  const std::size_t first = sizes.size() - tensor.sizes.size();
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] != 1) strides[first + d] = tensor.strides[d];
  }
  return strides;
}

/// Where a command finds the elements of an argument: in memory, or a number of its own.
template <typename T>
class Elements {
 public:
  Elements(const torch_lazy::OperatorCall& call, std::size_t argument) {
    for (std::size_t i = 0; i < argument; ++i) address_ += call.arguments[i].tensors.size();
    const auto& from = call.arguments[argument];
    if (from.tensors.empty()) number_ = from.constant.toScalar().to<T>();
  }

  const T* in(const std::vector<void*>& memory) const {
    return number_ ? &*number_ : static_cast<const T*>(memory[address_]);
  }

  /// Whether the argument is a tensor of this dtype, or a number.
  static bool hold(const torch_lazy::OperatorArgument& argument) {
    if (argument.tensors.empty()) return argument.constant.isScalar();
    return argument.tensors.size() == 1 &&
           argument.tensors[0].dtype == c10::CppTypeToScalarType<T>::value;
  }

 private:
  std::size_t address_ = 0;
  std::optional<T> number_;
};

}  // namespace accelerator
