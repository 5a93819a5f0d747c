// The device's compiler: a table of torch_lazy's core operators, each a command for one call of it.
// What is not here runs by the device's eager kernels.

#include <torch_lazy/backend/backend_library.h>
#include <torch_lazy/backend/operators/operator_backend.h>

#include <cmath>
#include <limits>

#include "commands.h"
#if !ACCELERATOR_EAGER
#include "runtime.h"
#endif

namespace accelerator {
namespace {

template <typename T>
using Limits = std::numeric_limits<T>;

constexpr auto kZero = []<typename T>(T) { return Sum<T>(0); };
constexpr auto kLeast = []<typename T>(T) {
  return Limits<T>::has_infinity ? T(-Limits<T>::infinity()) : Limits<T>::lowest();
};
constexpr auto kGreatest = []<typename T>(T) {
  return Limits<T>::has_infinity ? Limits<T>::infinity() : Limits<T>::max();
};
// NaN where either is.
constexpr auto kMaximum = [](auto a, auto b) { return b > a || b != b ? b : a; };
constexpr auto kMinimum = [](auto a, auto b) { return b < a || b != b ? b : a; };

const torch_lazy::OperatorTable& operators() {
  static const torch_lazy::OperatorTable table = {
      {"aten::full", full},
      {"aten::arange.start_step", arange},
      {"aten::_to_copy", cast},
      {"aten::clone", cast},

      {"aten::neg", elementwise<1>(kNumbers, [](auto x) { return -x; })},
      {"aten::abs", elementwise<1>(kNumbers, [](auto x) { return std::abs(x); })},
      {"aten::reciprocal", elementwise<1>(kFloats, [](auto x) { return 1 / x; })},
      {"aten::sqrt", elementwise<1>(kFloats, [](auto x) { return std::sqrt(x); })},
      {"aten::rsqrt", elementwise<1>(kFloats, [](auto x) { return 1 / std::sqrt(x); })},
      {"aten::exp", elementwise<1>(kFloats, [](auto x) { return std::exp(x); })},
      {"aten::log", elementwise<1>(kFloats, [](auto x) { return std::log(x); })},
      {"aten::log1p", elementwise<1>(kFloats, [](auto x) { return std::log1p(x); })},
      {"aten::sin", elementwise<1>(kFloats, [](auto x) { return std::sin(x); })},
      {"aten::cos", elementwise<1>(kFloats, [](auto x) { return std::cos(x); })},
      {"aten::tanh", elementwise<1>(kFloats, [](auto x) { return std::tanh(x); })},
      {"aten::erf", elementwise<1>(kFloats, [](auto x) { return std::erf(x); })},
      {"aten::sigmoid", elementwise<1>(kFloats, [](auto x) { return 1 / (1 + std::exp(-x)); })},
      {"aten::floor", elementwise<1>(kFloats, [](auto x) { return std::floor(x); })},
      {"aten::isnan", elementwise<1>(kFloats, [](auto x) { return std::isnan(x); })},
      {"aten::logical_not", elementwise<1>(kBool, [](bool x) { return !x; })},

      {"aten::add.Tensor", elementwise<2>(kNumbers, [](auto a, auto b) { return a + b; })},
      {"aten::sub.Tensor", elementwise<2>(kNumbers, [](auto a, auto b) { return a - b; })},
      {"aten::mul.Tensor", elementwise<2>(kNumbers, [](auto a, auto b) { return a * b; })},
      {"aten::div.Tensor", elementwise<2>(kFloats, [](auto a, auto b) { return a / b; })},
      {"aten::pow.Tensor_Tensor",
       elementwise<2>(kFloats, [](auto a, auto b) { return std::pow(a, b); })},
      {"aten::maximum", elementwise<2>(kNumbers, kMaximum)},
      {"aten::minimum", elementwise<2>(kNumbers, kMinimum)},
      {"aten::addcmul", elementwise<3>(kFloats, [](auto a, auto b, auto c) { return a + b * c; })},
      {"aten::where.self", where},

      {"aten::eq.Tensor", elementwise<2>(kAll, [](auto a, auto b) { return a == b; })},
      {"aten::ne.Tensor", elementwise<2>(kAll, [](auto a, auto b) { return a != b; })},
      {"aten::lt.Tensor", elementwise<2>(kAll, [](auto a, auto b) { return a < b; })},
      {"aten::le.Tensor", elementwise<2>(kAll, [](auto a, auto b) { return a <= b; })},
      {"aten::gt.Tensor", elementwise<2>(kAll, [](auto a, auto b) { return a > b; })},
      {"aten::ge.Tensor", elementwise<2>(kAll, [](auto a, auto b) { return a >= b; })},
      {"aten::logical_and", elementwise<2>(kBool, [](bool a, bool b) { return a && b; })},
      {"aten::logical_or", elementwise<2>(kBool, [](bool a, bool b) { return a || b; })},
      {"aten::bitwise_and.Tensor", elementwise<2>(kBits, [](auto a, auto b) { return a & b; })},
      {"aten::bitwise_or.Tensor", elementwise<2>(kBits, [](auto a, auto b) { return a | b; })},

      {"aten::sum.dim_IntList", reduction(kNumbers, kZero, [](auto a, auto b) { return a + b; })},
      {"aten::amax", reduction(kNumbers, kLeast, kMaximum)},
      {"aten::amin", reduction(kNumbers, kGreatest, kMinimum)},
      {"aten::any.dims", reduction(
                             kBool, [](bool) { return false; }, std::logical_or())},
      {"aten::all.dims", reduction(
                             kBool, [](bool) { return true; }, std::logical_and())},

      {"aten::mm", matrix_product},
      {"aten::bmm", matrix_product},
      {"aten::addmm", matrix_product},
      {"aten::cat", cat},
      {"aten::copy_", copy_to},
      {"aten::nll_loss_forward", nll_loss},
      {"aten::embedding", embedding},
      {"aten::index_select", gather},
      {"aten::gather", gather},
  };
  return table;
}

class AcceleratorBackend final : public torch_lazy::OperatorBackend {
 public:
#if ACCELERATOR_EAGER
  AcceleratorBackend() : OperatorBackend(c10::kPrivateUse1, "example accelerator", operators()) {}
#else
  AcceleratorBackend()
      : OperatorBackend(std::make_unique<Runtime>(), "example accelerator", operators()) {}
#endif
};

}  // namespace
}  // namespace accelerator

TORCH_LAZY_BACKEND("accel", accelerator::AcceleratorBackend);
