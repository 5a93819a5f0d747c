#pragma once

#include <c10/util/TypeCast.h>

#include <limits>
#include <memory>
#include <type_traits>

#include "device.h"
#include "loops.h"

/// What makes commands of calls. Each function returns an empty command for a call that the device
/// does not do, for instance of another dtype.
namespace accelerator {

using torch_lazy::DeviceCommand;
using torch_lazy::MakeCommand;
using torch_lazy::OperatorCall;
using torch_lazy::TensorDescription;

using Memory = std::vector<void*>;

/// In which sums of T are made.
template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

/// Puts `work` on the queue, where it may outlive the plan that it is part of.
template <typename Work>
DeviceCommand on_queue(Work work) {
  return [work = std::make_shared<const Work>(std::move(work))](c10::ArrayRef<void*> addresses) {
    Memory memory;
    for (const void* address : addresses) memory.push_back(in_command(address));
    enqueue([work, memory = std::move(memory)] { (*work)(memory); });
  };
}

template <typename... T>
struct Types {};
inline constexpr Types<float, double> kFloats;
inline constexpr Types<float, double, int64_t, int32_t> kNumbers;
inline constexpr Types<int64_t, int32_t, uint8_t, bool> kBits;
inline constexpr Types<bool> kBool;
inline constexpr Types<float, double, int64_t, int32_t, uint8_t, bool> kAll;
inline constexpr Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t, bool, c10::Half,
                       c10::BFloat16>
    kCast;
inline constexpr Types<uint8_t, int16_t, int32_t, int64_t> kSizes;  // Whatever is only moved.

/// `make(T())` for the type T of the dtype; no command where it is none of them.
template <typename... T, typename Make>
DeviceCommand for_type(Types<T...>, c10::ScalarType dtype, const Make& make) {
  DeviceCommand command;
  ((dtype == c10::CppTypeToScalarType<T>::value ? void(command = make(T())) : void()), ...);
  return command;
}

template <typename... T, typename Make>
DeviceCommand for_size(Types<T...>, c10::ScalarType dtype, const Make& make) {
  DeviceCommand command;
  ((c10::elementSize(dtype) == sizeof(T) ? void(command = make(T())) : void()), ...);
  return command;
}

/// The dtype of the operands, of which all but one may be numbers.
inline c10::ScalarType operand_dtype(const OperatorCall& call) {
  for (const auto& argument : call.arguments) {
    if (!argument.tensors.empty()) return argument.tensors[0].dtype;
  }
  return call.results[0].dtype;
}

/// result = function(arguments...), element by element.
template <typename Result, typename... Arguments, typename Function>
DeviceCommand pointwise(const OperatorCall& call, Function function) {
  return [&]<std::size_t... I>(std::index_sequence<I...>)->DeviceCommand {
    const TensorDescription& result = call.results[0];
    if (result.dtype != c10::CppTypeToScalarType<Result>::value) return {};
    if (!(Elements<Arguments>::hold(call.arguments[I]) && ...)) return {};
    // alpha of add and sub, value of addcmul: 1 in core operators.
    for (std::size_t i = sizeof...(I); sizeof...(I) > 1 && i < call.arguments.size(); ++i) {
      if (!call.arguments[i].constant.toScalar().equal(1)) return {};
    }
    const Loop<1 + sizeof...(I)> loop{
        result.sizes, {result.strides, broadcast(call.arguments[I], result.sizes)...}};
    return on_queue([loop, function,
                     elements = std::tuple(Elements<Arguments>(call, I)...)](const Memory& memory) {
      auto* const to = static_cast<Result*>(memory.back());
      [[maybe_unused]] const std::tuple from(std::get<I>(elements).in(memory)...);
      loop.run([&](const auto& at) { to[at[0]] = function(std::get<I>(from)[at[I + 1]]...); });
    });
  }
  (std::index_sequence_for<Arguments...>());
}

/// The function of one to three operands of one type, which is the result's unless that is bool.
template <std::size_t operands, typename List, typename Function>
MakeCommand elementwise(List types, Function function) {
  return [=](const OperatorCall& call) {
    return for_type(types, operand_dtype(call), [&]<typename T>(T x) {
      const auto made_of = [&](auto... x) -> DeviceCommand {
        using Result = decltype(function(x...));
        using Stored = std::conditional_t<std::is_same_v<Result, bool>, bool, T>;
        return pointwise<Stored, decltype(x)...>(call, function);
      };
      if constexpr (operands == 1) return made_of(x);
      if constexpr (operands == 2) return made_of(x, x);
      if constexpr (operands == 3) return made_of(x, x, x);
    });
  };
}

inline DeviceCommand where(const OperatorCall& call) {
  return for_type(kAll, call.results[0].dtype, [&]<typename T>(T) {
    return pointwise<T, bool, T, T>(call, [](bool c, T a, T b) { return c ? a : b; });
  });
}

inline DeviceCommand cast(const OperatorCall& call) {
  return for_type(kCast, operand_dtype(call), [&]<typename From>(From) {
    return for_type(kCast, call.results[0].dtype, [&]<typename To>(To) {
      return pointwise<To, From>(call, [](From x) { return c10::convert<To>(x); });
    });
  });
}

/// Into memory that there is: of a tensor that a program keeps, or a part of one.
inline DeviceCommand copy_to(const OperatorCall& call) {
  const TensorDescription& result = call.results[0];
  const Loop<2> loop{result.sizes, {result.strides, broadcast(call.arguments[1], result.sizes)}};
  return for_type(kCast, call.arguments[1].tensors[0].dtype, [&]<typename From>(From) {
    return for_type(kCast, result.dtype, [&]<typename To>(To) {
      return on_queue([loop](const Memory& memory) {
        const auto* const from = static_cast<const From*>(memory[1]);
        auto* const to = static_cast<To*>(memory[2]);
        loop.run([&](const auto& at) { to[at[0]] = c10::convert<To>(from[at[1]]); });
      });
    });
  });
}

inline DeviceCommand full(const OperatorCall& call) {
  const c10::Scalar number = call.arguments[1].constant.toScalar();
  return for_type(kAll, call.results[0].dtype, [&]<typename T>(T) {
    return pointwise<T>(call, [value = number.to<T>()] { return value; });
  });
}

inline DeviceCommand arange(const OperatorCall& call) {
  const c10::Scalar start = call.arguments[0].constant.toScalar(),
                    step = call.arguments[2].constant.toScalar();
  return for_type(kNumbers, call.results[0].dtype, [&]<typename T>(T) {
    return on_queue([count = call.results[0].sizes[0], start = start.to<Sum<T>>(),
                     step = step.to<Sum<T>>()](const Memory& memory) {
      for (int64_t i = 0; i < count; ++i) static_cast<T*>(memory[0])[i] = T(start + step * i);
    });
  });
}

/// A dimension of the tensor, which may be counted from its end.
inline std::size_t wrapped(int64_t dimension, const TensorDescription& tensor) {
  return std::size_t(dimension < 0 ? dimension + int64_t(tensor.sizes.size()) : dimension);
}

/// Whether that argument is one tensor, and not the number that a tensor without dimensions may be.
inline bool is_tensor(const OperatorCall& call, std::size_t argument) {
  return call.arguments[argument].tensors.size() == 1;
}

/// Folds the listed dimensions by `combine`, which is given what it returned before, or `first`.
template <typename List, typename First, typename Combine>
MakeCommand reduction(List types, First first, Combine combine) {
  return [=](const OperatorCall& call) -> DeviceCommand {
    if (!is_tensor(call, 0) || call.arguments[0].tensors[0].sizes.empty()) return {};
    const TensorDescription &x = call.arguments[0].tensors[0], &result = call.results[0];
    const bool keeps = call.arguments[2].constant.toBool();
    const c10::IValue& listed = call.arguments[1].constant;
    const auto dimensions = listed.isNone() ? Extents() : listed.toIntVector();
    std::vector<bool> reduced(x.sizes.size(), dimensions.empty());  // All where none is listed.
    for (const int64_t d : dimensions) reduced[wrapped(d, x)] = true;
    Loop<2> kept{x.sizes, {Extents(x.sizes.size()), x.strides}};
    Loop<1> folded{x.sizes, {x.strides}};
    for (std::size_t d = 0, next = 0; d < x.sizes.size(); ++d) {
      (reduced[d] ? kept.sizes : folded.sizes)[d] = 1;
      if (!reduced[d]) kept.strides[0][d] = result.strides[keeps ? d : next++];
    }
    return for_type(
        types, x.dtype == result.dtype ? x.dtype : c10::ScalarType::Undefined, [&]<typename T>(T) {
          return on_queue([=](const Memory& memory) {
            const auto* const from = static_cast<const T*>(memory[0]);
            kept.run([&](const auto& at) {
              auto value = first(T());
              folded.run([&](const auto& in) { value = combine(value, from[at[1] + in[0]]); });
              static_cast<T*>(memory[1])[at[0]] = T(value);
            });
          });
        });
  };
}

/// mm, bmm, and addmm, which has a bias in front and two factors behind.
inline DeviceCommand matrix_product(const OperatorCall& call) {
  const bool adds = call.arguments.size() == 5;
  const TensorDescription &a = call.arguments[adds].tensors[0], &result = call.results[0],
                          &b = call.arguments[adds + 1].tensors[0];
  const int64_t terms = a.sizes.back(), a_step = a.strides.back(), b_step = b.strides.end()[-2];
  Loop<4> points{result.sizes, {result.strides, a.strides, b.strides}};
  points.strides[1].back() = points.strides[2].end()[-2] = 0;
  points.strides[3] = adds ? broadcast(call.arguments[0], result.sizes) : result.strides;
  const c10::Scalar beta = adds ? call.arguments[3].constant.toScalar() : 0,
                    alpha = adds ? call.arguments[4].constant.toScalar() : 1;
  return for_type(kNumbers, result.dtype, [&]<typename T>(T) {
    return on_queue(
        [=, beta = beta.to<Sum<T>>(), alpha = alpha.to<Sum<T>>()](const Memory& memory) {
          const auto* const bias = static_cast<const T*>(memory[0]);
          const auto* const left = static_cast<const T*>(memory[adds]);
          const auto* const right = static_cast<const T*>(memory[adds + 1]);
          points.run([&](const auto& at) {
            Sum<T> sum = 0;
            for (int64_t k = 0; k < terms; ++k) {
              sum += Sum<T>(left[at[1] + k * a_step]) * right[at[2] + k * b_step];
            }
            sum *= alpha;
            if (beta != 0) sum += beta * bias[at[3]];
            static_cast<T*>(memory.back())[at[0]] = T(sum);
          });
        });
  });
}

inline DeviceCommand cat(const OperatorCall& call) {
  const TensorDescription& result = call.results[0];
  const std::size_t dimension = wrapped(call.arguments[1].constant.toInt(), result);
  std::vector<std::pair<int64_t, Loop<2>>> pieces;  // With the offset of each in the result.
  int64_t begin = 0;
  for (const TensorDescription& piece : call.arguments[0].tensors) {
    if (piece.dtype != result.dtype || piece.sizes.size() != result.sizes.size()) return {};
    pieces.push_back({begin, {piece.sizes, {result.strides, piece.strides}}});
    begin += piece.sizes[dimension] * result.strides[dimension];
  }
  return for_size(kSizes, result.dtype, [&]<typename T>(T) {
    return on_queue([pieces](const Memory& memory) {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        auto* const to = static_cast<T*>(memory.back()) + pieces[i].first;
        const auto* const from = static_cast<const T*>(memory[i]);
        pieces[i].second.run([&](const auto& at) { to[at[0]] = from[at[1]]; });
      }
    });
  });
}

/// Elements of a source at indices along one of its dimensions. The strides are along those of the
/// result.
inline DeviceCommand look_up(const OperatorCall& call, std::size_t dimension,
                             Extents source_strides, const TensorDescription& indices,
                             Extents index_strides) {
  const TensorDescription &source = call.arguments[0].tensors[0], &result = call.results[0];
  const Loop<3> loop{result.sizes,
                     {result.strides, std::move(source_strides), std::move(index_strides)}};
  return for_type(Types<int64_t, int32_t>(), indices.dtype, [&]<typename I>(I) {
    return for_size(kSizes, result.dtype, [&]<typename T>(T) {
      return on_queue([loop, size = source.sizes[dimension],
                       stride = source.strides[dimension]](const Memory& memory) {
        loop.run([&](const auto& at) {
          const int64_t row = static_cast<const I*>(memory[1])[at[2]];
          TORCH_CHECK_INDEX(row >= 0 && row < size, "accel: index out of range: ", row);
          static_cast<T*>(memory[2])[at[0]] =
              static_cast<const T*>(memory[0])[at[1] + row * stride];
        });
      });
    });
  });
}

inline DeviceCommand embedding(const OperatorCall& call) {
  if (!is_tensor(call, 1)) return {};
  const TensorDescription &rows = call.arguments[0].tensors[0],
                          &indices = call.arguments[1].tensors[0];
  Extents along_row(indices.sizes.size(), 0), along_indices = indices.strides;
  along_row.push_back(rows.strides[1]);
  along_indices.push_back(0);
  return look_up(call, 0, std::move(along_row), indices, std::move(along_indices));
}

/// gather, whose indices have the result's dimensions, and index_select, whose have one.
inline DeviceCommand gather(const OperatorCall& call) {
  if (!is_tensor(call, 0) || !is_tensor(call, 2)) return {};
  const TensorDescription &source = call.arguments[0].tensors[0],
                          &indices = call.arguments[2].tensors[0];
  if (source.sizes.empty() || indices.sizes.empty()) return {};
  const std::size_t dimension = wrapped(call.arguments[1].constant.toInt(), source);
  Extents others = source.strides, along_indices = indices.strides;
  others[dimension] = 0;
  if (call.name == "aten::index_select") {
    along_indices.assign(others.size(), 0);
    along_indices[dimension] = indices.strides[0];
  }
  return look_up(call, dimension, std::move(others), indices, std::move(along_indices));
}

/// nll_loss_forward of rows without weights, summed or averaged; the second result counts targets.
inline DeviceCommand nll_loss(const OperatorCall& call) {
  if (!is_tensor(call, 0) || !is_tensor(call, 1)) return {};
  const TensorDescription& rows = call.arguments[0].tensors[0];
  const int64_t reduction = call.arguments[3].constant.toInt(),
                ignored = call.arguments[4].constant.toInt();
  if (rows.sizes.size() != 2 || !call.arguments[2].tensors.empty() || reduction == 0) return {};
  return for_type(kFloats, rows.dtype, [&]<typename T>(T) {
    return on_queue([=, step = call.arguments[1].tensors[0].strides[0]](const Memory& memory) {
      double sum = 0, count = 0;
      for (int64_t i = 0; i < rows.sizes[0]; ++i) {
        const int64_t target = static_cast<const int64_t*>(memory[1])[i * step];
        if (target == ignored) continue;
        TORCH_CHECK_INDEX(target >= 0 && target < rows.sizes[1], "Target ", target,
                          " is out of bounds.");
        sum -= static_cast<const T*>(memory[0])[i * rows.strides[0] + target * rows.strides[1]];
        count += 1;
      }
      *static_cast<T*>(memory[2]) = T(reduction == 1 ? sum / count : sum);
      *static_cast<T*>(memory[3]) = T(count);
    });
  });
}

}  // namespace accelerator
