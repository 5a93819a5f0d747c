// Numbers of the loop IR, and how they lie in memory.
#pragma once

#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "ops/primitive.h"

namespace torch_lazy::codegen {

using namespace primitive;

// A number of the loop IR: `real` for floating types, `integer` for all others.
struct Number {
  double real = 0;
  int64_t integer = 0;
};

inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

inline float float_of_bfloat16(uint16_t bits) {
  return float_of_bits(uint32_t{bits} << 16);
}

inline uint16_t bfloat16_of_float(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const uint32_t bits = bits_of_float(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline Number read_number(Type type, const void* memory, int64_t index) {
  const auto* bytes = static_cast<const char*>(memory) + index * bytes_of(type);
  const auto as = [&](auto zero) {
    std::memcpy(&zero, bytes, sizeof(zero));
    return zero;
  };
  switch (type) {
    case Type::kBool:
      return {.integer = as(uint8_t{}) != 0};
    case Type::kUInt8:
      return {.integer = as(uint8_t{})};
    case Type::kInt8:
      return {.integer = as(int8_t{})};
    case Type::kInt16:
      return {.integer = as(int16_t{})};
    case Type::kInt32:
      return {.integer = as(int32_t{})};
    case Type::kInt64:
      return {.integer = as(int64_t{})};
    case Type::kFloat8E4M3FN:
      return {.real = c10::Float8_e4m3fn(as(uint8_t{}), c10::Float8_e4m3fn::from_bits())};
    case Type::kFloat8E5M2:
      return {.real = c10::Float8_e5m2(as(uint8_t{}), c10::Float8_e5m2::from_bits())};
    case Type::kBFloat16:
      return {.real = float_of_bfloat16(as(uint16_t{}))};
    case Type::kHalf:
      return {.real = static_cast<double>(as(_Float16{}))};
    case Type::kFloat:
      return {.real = as(float{})};
    case Type::kDouble:
      return {.real = as(double{})};
  }
  throw std::logic_error("no such type");
}

inline void write_number(Type type, void* memory, int64_t index, Number number) {
  auto* bytes = static_cast<char*>(memory) + index * bytes_of(type);
  const auto put = [&](auto value) { std::memcpy(bytes, &value, sizeof(value)); };
  switch (type) {
    case Type::kBool:
      return put(static_cast<uint8_t>(number.integer != 0));
    case Type::kUInt8:
      return put(static_cast<uint8_t>(number.integer));
    case Type::kInt8:
      return put(static_cast<int8_t>(number.integer));
    case Type::kInt16:
      return put(static_cast<int16_t>(number.integer));
    case Type::kInt32:
      return put(static_cast<int32_t>(number.integer));
    case Type::kInt64:
      return put(number.integer);
    case Type::kFloat8E4M3FN:
      return put(c10::Float8_e4m3fn(static_cast<float>(number.real)).x);
    case Type::kFloat8E5M2:
      return put(c10::Float8_e5m2(static_cast<float>(number.real)).x);
    case Type::kBFloat16:
      return put(bfloat16_of_float(static_cast<float>(number.real)));
    case Type::kHalf:
      return put(static_cast<_Float16>(number.real));
    case Type::kFloat:
      return put(static_cast<float>(number.real));
    case Type::kDouble:
      return put(number.real);
  }
}

// The number as a value of the type: integers wrap, floating values are rounded.
inline Number round_to(Type type, Number number) {
  char memory[8];
  // Arithmetic in float is compared with a tolerance; only what is stored as less is rounded.
  if (type == Type::kFloat || type == Type::kDouble) return number;
  write_number(type, memory, 0, number);
  return read_number(type, memory, 0);
}

}  // namespace torch_lazy::codegen
