#include "accuracy_reference.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace torch_lazy::accuracy {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();

long double sigmoid(long double x) {
  const long double e = expl(-fabsl(x));
  return (x < 0 ? e : 1) / (1 + e);
}

long double reciprocal(long double x) {
  return 1 / x;
}
long double rsqrt(long double x) {
  return 1 / sqrtl(x);
}

long double erfinv(long double y) {
  if (!(fabsl(y) <= 1)) return kNaN;
  if (fabsl(y) == 1) return copysignl(kInfinity, y);
  if (y == 0) return y;
  const long double a = fabsl(y);
  // Winitzki's approximation, then Halley's steps to a fixed point.
  const long double l = logl((1 - a) * (1 + a));
  const long double t = 2 / (std::numbers::pi_v<long double> * 0.147L) + l / 2;
  long double x = sqrtl(sqrtl(t * t - l / 0.147L) - t);
  if (a < 1e-4L) x = a * sqrtl(std::numbers::pi_v<long double>) / 2;
  for (int i = 0; i < 6; ++i) {
    const long double error = a < 0.5L ? erfl(x) - a : (1 - a) - erfcl(x);
    const long double step = error * sqrtl(std::numbers::pi_v<long double>) / 2 * expl(x * x);
    x -= step / (1 + x * step);
  }
  return copysignl(x, y);
}

// Recurrence to 40 and beyond, then the asymptotic series.
long double digamma(long double x) {
  if (x == 0) return copysignl(kInfinity, -x);
  if (x == -kInfinity || (x < 0 && x == floorl(x))) return kNaN;
  if (std::isinf(x) || std::isnan(x)) return x;
  if (x < 0) {
    const long double fraction = x - roundl(x);
    return digamma(1 - x) -
           std::numbers::pi_v<long double> / tanl(std::numbers::pi_v<long double> * fraction);
  }
  long double sum = 0;
  for (; x < 40; x += 1) sum -= 1 / x;
  const long double z = 1 / (x * x);
  const long double series =
      z *
      (1.0L / 12 -
       z * (1.0L / 120 -
            z * (1.0L / 252 -
                 z * (1.0L / 240 - z * (1.0L / 132 - z * (691.0L / 32760 - z * (1.0L / 12)))))));
  return sum + logl(x) - 0.5L / x - series;
}

}  // namespace

const std::vector<Unary>& unary_functions() {
  static const std::vector<Unary> kFunctions = {
      {"exp", "exp", expl, 2, 2},
      {"exp2", "exp2", exp2l, 2, 2},
      {"expm1", "expm1", expm1l, 2, 2},
      {"log", "log", logl, 2, 2},
      {"log2", "log2", log2l, 2, 2},
      {"log10", "log10", log10l, 2, 2},
      {"log1p", "log1p", log1pl, 2, 2},
      {"sin", "sin", sinl, 2, 2},
      {"cos", "cos", cosl, 2, 2},
      {"tan", "tan", tanl, 2, 2},
      {"asin", "asin", asinl, 2, 2},
      {"acos", "acos", acosl, 2, 2},
      {"atan", "atan", atanl, 2, 2},
      {"sinh", "sinh", sinhl, 2, 3},
      {"cosh", "cosh", coshl, 2, 3},
      {"tanh", "tanh", tanhl, 2, 2},
      {"asinh", "asinh", asinhl, 2, 2},
      {"acosh", "acosh", acoshl, 2, 2},
      {"atanh", "atanh", atanhl, 2, 2},
      {"erf", "erf", erfl, 2, 2},
      {"erfc", "erfc", erfcl, 2, 2},
      {"erfinv", "erfinv", erfinv, 2, 4},
      {"lgamma", "lgamma", lgammal, 4, 4, true},
      {"digamma", "digamma", digamma, 4, 32, true},
      {"sigmoid", "sigmoid", sigmoid, 2, 2},
      {"sqrt", "sqrt", sqrtl, 0.5, 0.5},
      {"rsqrt", "rsqrt", rsqrt, 2, 2},
      {"reciprocal", "reciprocal", reciprocal, 0.5, 0.5},
      {"floor", "floor", floorl, 0, 0},
      {"ceil", "ceil", ceill, 0, 0},
      {"round", "round", roundevenl, 0, 0},
      {"trunc", "trunc", truncl, 0, 0},
  };
  return kFunctions;
}

const std::vector<Binary>& binary_functions() {
  static const std::vector<Binary> kFunctions = {
      {"pow", "pow", powl, 4, 4},
      {"atan2", "atan2", atan2l, 2, 2},
      {"hypot", "hypot", hypotl, 2, 2},
      {"fmod", "fmod", fmodl, 0, 0},
      {"div", "div", [](long double a, long double b) { return a / b; }, 0.5, 0.5},
  };
  return kFunctions;
}

}  // namespace torch_lazy::accuracy
