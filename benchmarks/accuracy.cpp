// How accurate the functions of kernels are: each is compiled as kernels are and swept against
// long double. Prints docs/accuracy.md's table.
//
//   accuracy [--samples N] [function ...]
//
// Samples per function and type: every (2^32 / N)th bit pattern of float (of double, as many
// patterns spread evenly), as many again spread over [-20, 20], and special values. Of functions of
// two, N random pairs of patterns, N of numbers within 100, and all pairs of special values. Exits
// with 1 where a stated limit is exceeded or a special value is not as in eager PyTorch.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/from_blob.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "accuracy_reference.h"
#include "backend/cpu/kernel_compiler.h"
#include "codegen/prelude.h"

namespace torch_lazy::accuracy {
namespace {

using codegen::Target;

template <class T>
struct Traits;
template <>
struct Traits<float> {
  using Bits = uint32_t;
  static constexpr const char* kName = "float";
  static constexpr int kDigits = 24, kLeastExponent = -149;
};
template <>
struct Traits<double> {
  using Bits = uint64_t;
  static constexpr const char* kName = "double";
  static constexpr int kDigits = 53, kLeastExponent = -1074;
};

// The distance in units of the last place that the expected value has as a T. Infinity counts as
// the number that would follow the largest. `least`: units are at least those of a number of this
// size.
template <class T>
double ulps(T got, long double expected, long double least = 0) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  const auto beyond = ldexpl(1, std::numeric_limits<T>::max_exponent);
  const auto finite = [&](long double x) { return fabsl(x) > beyond ? copysignl(beyond, x) : x; };
  const long double reached = finite(got), wanted = finite(expected);
  if (reached == wanted) return 0;
  int exponent = 0;
  frexpl(std::max(fabsl(wanted), least), &exponent);
  exponent = std::max(exponent, Traits<T>::kLeastExponent + Traits<T>::kDigits);
  exponent = std::min(exponent, std::numeric_limits<T>::max_exponent);
  return static_cast<double>(fabsl(reached - wanted) / ldexpl(1, exponent - Traits<T>::kDigits));
}

template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T x : {T(0),
                    Limits::denorm_min(),
                    Limits::min(),
                    Limits::epsilon(),
                    T(0.5),
                    T(1),
                    T(1) + Limits::epsilon(),
                    T(1) - Limits::epsilon() / 2,
                    T(1.5),
                    T(2),
                    T(2.5),
                    T(3),
                    T(4),
                    T(88.8),
                    T(103.9),
                    T(127),
                    T(128),
                    T(170),
                    T(1000),
                    T(1e9),
                    T(1e30),
                    Limits::max(),
                    Limits::infinity()}) {
    values.push_back(x);
    values.push_back(-x);
  }
  values.push_back(Limits::quiet_NaN());
  return values;
}

template <class T>
T from_bits(uint64_t pattern) {
  const auto bits = static_cast<typename Traits<T>::Bits>(pattern);
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

int lanes() {
  return kernel_vector_bits() / 32;
}

struct Evaluator {
  std::shared_ptr<const CompiledKernel> kernel;

  // All of one length, a multiple of the lanes.
  template <class T>
  void operator()(const std::vector<T>& a, const std::vector<T>& b, std::vector<T>& result) const {
    result.resize(a.size());
    void* const pointers[] = {const_cast<T*>(a.data()), const_cast<T*>(b.data()), result.data()};
    kernel->function(pointers, nullptr, nullptr, 0, static_cast<int64_t>(a.size()));
  }
};

template <class T>
Evaluator compile(const std::string& op, bool binary) {
  const std::string type = Traits<T>::kName;
  const std::string source =
      codegen::prelude_for(
          {.kind = Target::Kind::kCpu, .lanes = lanes()},
          {"lazy_" + op + ":v_" + type, "lazy_load_" + type, "lazy_store_" + type}) +
      "extern \"C\" void swept(void* const* pointers, const long* sizes, const double* numbers,\n"
      "                      long begin, long end) {\n"
      "  const " +
      type + "* a = (const " + type +
      "*)pointers[0];\n"
      "  const " +
      type + "* b = (const " + type +
      "*)pointers[1];\n"
      "  " +
      type + "* result = (" + type +
      "*)pointers[2];\n"
      "  for (long i = begin; i < end; i += LAZY_LANES)\n"
      "    lazy_store_" +
      type + "(result + i, lazy_" + op + "(lazy_load_" + type + "(a + i)" +
      (binary ? ", lazy_load_" + type + "(b + i)" : "") +
      "));\n"
      "}\n";
  return {compile_kernel(source, "swept")};
}

template <class T>
struct Worst {
  double ulps = 0;
  T a = 0, b = 0, got = 0;
};

template <class T>
at::Tensor eager(const std::string& name, const std::vector<T>& a, const std::vector<T>& b,
                 bool binary) {
  const auto type = sizeof(T) == 4 ? at::kFloat : at::kDouble;
  const auto tensor = [&](const std::vector<T>& values) {
    return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())},
                         at::TensorOptions(type));
  };
  std::string overload;
  if (binary && name != "atan2" && name != "hypot")
    overload = name == "pow" ? "Tensor_Tensor" : "Tensor";
  torch::jit::Stack stack = {tensor(a)};
  if (binary) stack.emplace_back(tensor(b));
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str())
      .callBoxed(&stack);
  return stack[0].toTensor();
}

// The first special value where the kernel is neither as eager, sign of zero included, nor within
// the limit of the reference; empty if there is none. (SLEEF's vectors, and so eager's, lose
// denormals and overflow early in places.)
template <class T, class Reference>
std::string differing_special(const std::string& op, const std::string& eager_name, bool binary,
                              const Evaluator& evaluate, Reference reference, double limit,
                              long double least) {
  std::vector<T> a, b;
  for (const T x : special_values<T>()) {
    for (const T y : binary ? special_values<T>() : std::vector<T>{0}) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const size_t count = a.size();
  a.resize((count + lanes() - 1) / lanes() * lanes());
  b.resize(a.size());
  std::vector<T> got;
  evaluate(a, b, got);
  const at::Tensor expected = eager(eager_name, a, b, binary);
  for (size_t i = 0; i < count; ++i) {
    const T wanted = expected.const_data_ptr<T>()[i];
    if (std::isnan(wanted) && std::isnan(got[i])) continue;
    if (got[i] == wanted && std::signbit(got[i]) == std::signbit(wanted)) continue;
    const long double exact = reference(a[i], b[i]);
    const bool sign_differs =
        static_cast<T>(exact) == 0 && std::signbit(got[i]) != std::signbit(exact);
    if (!sign_differs && ulps(got[i], exact, least) <= limit) continue;
    std::ostringstream text;
    text << std::setprecision(Traits<T>::kDigits / 3 + 1) << op << '(' << a[i];
    if (binary) text << ", " << b[i];
    text << ") = " << got[i] << ", eager " << wanted;
    return text.str();
  }
  return {};
}

template <class T, class Reference>
void sweep(const std::vector<T>& a, const std::vector<T>& b, const Evaluator& evaluate,
           Reference reference, long double least, Worst<T>& worst) {
  std::vector<T> got;
  evaluate(a, b, got);
  for (size_t i = 0; i < a.size(); ++i) {
    const double distance = ulps(got[i], reference(a[i], b[i]), least);
    if (distance > worst.ulps) worst = {distance, a[i], b[i], got[i]};
  }
}

// Nanoseconds of one element on one core, data in the first-level cache.
template <class T>
double time_of(const Evaluator& evaluate) {
  constexpr size_t kCount = 1024, kRepeats = 200;
  std::vector<T> a(kCount), b(kCount), result(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = T(0.1) + T(i) / kCount;
    b[i] = T(1.5) - T(i) / kCount;
  }
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < kRepeats; ++i) evaluate(a, b, result);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / (kCount * kRepeats));
  }
  return best;
}

struct Row {
  std::string text;
  bool good = true;
};

template <class T, class Reference>
void append_columns(const std::string& op, const std::string& eager_name, bool binary,
                    Reference reference, double limit, long double least, size_t samples,
                    Row& row) {
  const Evaluator evaluate = compile<T>(op, binary);
  constexpr size_t kBatch = 1 << 14;
  Worst<T> worst;
  std::mt19937_64 random(1);
  const auto pattern_step =
      static_cast<uint64_t>(std::ldexp(1.0, 8 * sizeof(T)) / static_cast<double>(samples)) | 1;
  // Takes the numbers to where exponential functions overflow and vanish.
  const T edge = (sizeof(T) == 4 ? T(110) : T(750)) / (binary ? 100 : 20);
  std::uniform_real_distribution<T> within(binary ? -100 : -20, binary ? 100 : 20);
  for (size_t done = 0; done < samples; done += kBatch) {
    std::vector<T> patterns(kBatch), numbers(kBatch), second(kBatch), second_number(kBatch);
    for (size_t i = 0; i < kBatch; ++i) {
      patterns[i] = from_bits<T>(binary ? random() : (done + i) * pattern_step);
      second[i] = from_bits<T>(random());
      numbers[i] = within(random);
      second_number[i] = within(random);
    }
    sweep(patterns, second, evaluate, reference, least, worst);
    sweep(numbers, second_number, evaluate, reference, least, worst);
    for (T& number : numbers) number *= edge;
    sweep(numbers, second_number, evaluate, reference, least, worst);
  }
  const std::string special =
      differing_special<T>(op, eager_name, binary, evaluate, reference, limit, least);
  char text[200];
  if (binary) {
    std::snprintf(text, sizeof text, " %.2f | %.6g, %.6g | %.2f | ", worst.ulps,
                  static_cast<double>(worst.a), static_cast<double>(worst.b), time_of<T>(evaluate));
  } else {
    std::snprintf(text, sizeof text, " %.2f | %.8g | %.2f | ", worst.ulps,
                  static_cast<double>(worst.a), time_of<T>(evaluate));
  }
  row.text += text + (special.empty() ? "as eager" : special) + " |";
  if (worst.ulps > limit || !special.empty()) row.good = false;
}

bool run(size_t samples, const std::set<std::string>& only) {
  std::printf(
      "| function | float: ulp | at | ns | special values | double: ulp | at | ns | special values "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  bool good = true;
  const auto finish = [&](const Row& row) {
    std::printf("%s\n", row.text.c_str());
    std::fflush(stdout);
    good = good && row.good;
  };
  for (const Unary& f : unary_functions()) {
    if (!only.empty() && !only.contains(f.op)) continue;
    Row row{.text = std::string("| ") + f.op + " |"};
    const auto reference = [&](long double a, long double) { return f.reference(a); };
    append_columns<float>(f.op, f.eager, false, reference, f.float_limit, 0, samples, row);
    append_columns<double>(f.op, f.eager, false, reference, f.double_limit, f.has_roots ? 1 : 0,
                           samples / 8, row);
    finish(row);
  }
  for (const Binary& f : binary_functions()) {
    if (!only.empty() && !only.contains(f.op)) continue;
    Row row{.text = std::string("| ") + f.op + " |"};
    append_columns<float>(f.op, f.eager, true, f.reference, f.float_limit, 0, samples, row);
    append_columns<double>(f.op, f.eager, true, f.reference, f.double_limit, 0, samples / 8, row);
    finish(row);
  }
  return good;
}

}  // namespace
}  // namespace torch_lazy::accuracy

int main(int count, char** arguments) {
  size_t samples = size_t{1} << 22;
  std::set<std::string> only;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--samples") == 0 && i + 1 < count) {
      samples = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      only.insert(arguments[i]);
    }
  }
  try {
    return torch_lazy::accuracy::run(samples, only) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "accuracy: %s\n", error.what());
    return 2;
  }
}
