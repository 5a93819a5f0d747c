#include "simt/device_functions.h"

#include <ATen/native/Math.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_map>

#include "simt/block_runner.h"

namespace torch_lazy::simt {
namespace {

// Global: launches run one at a time.
BlockRunner* runner = nullptr;
Dim3 thread_index, block_index, block_dimensions, grid_dimensions;

void* access(void* address, uint32_t site) {
  return runner->access(address, site);
}

void block_barrier(uint32_t site) {
  runner->wait_for_block(site);
}

void warp_barrier(uint32_t mask, uint32_t site) {
  runner->exchange({.mask = mask}, site);
}

uint64_t exchange(uint32_t mask, uint64_t value, int how, int lane, int width, uint32_t site) {
  return runner->exchange({mask, value, static_cast<Exchange>(how), lane, width}, site);
}

uint32_t active_mask() {
  return runner->active_mask();
}

float float_of_half(uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof(half));
  return static_cast<float>(half);
}

uint16_t half_of_float(float value) {
  const auto half = static_cast<_Float16>(value);
  uint16_t bits = 0;
  std::memcpy(&bits, &half, sizeof(half));
  return bits;
}

// The first is the upper half.
uint32_t halves_of_floats(float high, float low) {
  return uint32_t{half_of_float(high)} << 16 | half_of_float(low);
}

uint32_t bfloat16_of_float(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

uint32_t bfloat16s_of_floats(float high, float low) {
  return bfloat16_of_float(high) << 16 | bfloat16_of_float(low);
}

// +0 is above -0, and all NaNs are one.
float greater_or_nan(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

float less_or_nan(float a, float b) {
  return -greater_or_nan(-a, -b);
}

// In error by one unit of the last place, as a device's may be.
float nearly_reciprocal(float x) {
  return std::nextafter(1 / x, 0.0F);
}

// What CUDA's library has and C's has not.
double erfinv(double x) {
  return calc_erfinv(x);
}
double rsqrt(double x) {
  return 1 / std::sqrt(x);
}

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* device_function(const char* name) {
  static const std::unordered_map<std::string, void*> functions = {
      {"simt_access", address_of(access)},
      {"simt_block_barrier", address_of(block_barrier)},
      {"simt_warp_barrier", address_of(warp_barrier)},
      {"simt_exchange", address_of(exchange)},
      {"simt_active_mask", address_of(active_mask)},
      {"simt_float_of_half", address_of(float_of_half)},
      {"simt_half_of_float", address_of(half_of_float)},
      {"simt_halves_of_floats", address_of(halves_of_floats)},
      {"simt_bfloat16s_of_floats", address_of(bfloat16s_of_floats)},
      {"simt_greater_or_nan", address_of(greater_or_nan)},
      {"simt_less_or_nan", address_of(less_or_nan)},
      {"simt_nearly_reciprocal", address_of(nearly_reciprocal)},
      {"erfinv", address_of(erfinv)},
      {"rsqrt", address_of(rsqrt)},
      {"threadIdx", &thread_index},
      {"blockIdx", &block_index},
      {"blockDim", &block_dimensions},
      {"gridDim", &grid_dimensions},
  };
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

void set_runner(BlockRunner* of_launch) {
  runner = of_launch;
}

void set_dimensions(Dim3 grid, Dim3 block) {
  grid_dimensions = grid;
  block_dimensions = block;
}

void set_block_index(Dim3 index) {
  block_index = index;
}

void set_thread_index(Dim3 index) {
  thread_index = index;
}

}  // namespace torch_lazy::simt
