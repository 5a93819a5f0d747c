// How kernels reach memory and other lanes: parts of vectors, strides, reductions of a vector.

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "prelude_on_target.h"

namespace torch_lazy {
namespace {

// Two pages of which the second cannot be touched.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    pages_ = static_cast<char*>(
        mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages_ + size_, size_, PROT_NONE);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  ~GuardedPage() { munmap(pages_, 2 * size_); }

  char* end() const { return pages_ + size_; }

 private:
  size_t size_;
  char* pages_;
};

TEST_P(PreludeOnTargetTest, PartsOfVectorsTouchNoMemoryBeyond) {
  const GuardedPage source, destination;
  for (const auto& [type, bytes] : {std::pair{"float", 4},
                                    {"double", 8},
                                    {"int64", 8},
                                    {"int32", 4},
                                    {"int16", 2},
                                    {"int8", 1},
                                    {"uint8", 1},
                                    {"bool", 1},
                                    {"float8_e4m3fn", 1},
                                    {"float8_e5m2", 1},
                                    {"bfloat16", 2},
                                    {"half", 2}}) {
    const std::string name = type, storage_type = storage(type);
    const KernelFunction kernel =
        compile({"lazy_load_" + name + ":int", "lazy_store_" + name + ":int",
                 "lazy_load_" + name + ":v_bool", "lazy_store_" + name + ":v_bool",
                 "lazy_gather_" + name, "lazy_scatter_" + name, "lazy_lanes_below"},
                "auto* from = (const " + storage_type + "*)p[0]; auto* to = (" + storage_type +
                    "*)p[1];\n"
                    "const int n = end;\n"
                    "lazy_store_" +
                    name + "(to, lazy_load_" + name +
                    "(from, n), n);\n"
                    "lazy_store_" +
                    name + "(to, lazy_load_" + name +
                    "(from, lazy_lanes_below(n)), lazy_lanes_below(n));\n"
                    "lazy_scatter_" +
                    name + "(to, 1, lazy_gather_" + name + "(from, 1, n), n);");
    for (int n = 0; n <= lanes(); ++n) {
      char* const from = source.end() - n * bytes;
      char* const to = destination.end() - n * bytes;
      for (int i = 0; i < n * bytes; ++i) from[i] = static_cast<char>(i % bytes == 0 ? 1 : 0);
      std::memset(to - 1, 0x55, n * bytes + 1);
      void* const pointers[] = {from, to};

      kernel(pointers, nullptr, nullptr, 0, n);

      EXPECT_EQ(std::memcmp(from, to, n * bytes), 0) << name << " " << n;
      EXPECT_EQ(to[-1], 0x55) << name << " " << n;
    }
  }
}

TEST_P(PreludeOnTargetTest, StridedElementsAreGatheredAndScattered) {
  std::vector<double> from(200), to(200, -1);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i);
  const KernelFunction kernel = compile(
      {"lazy_gather_double", "lazy_scatter_double"},
      "lazy_scatter_double((double*)p[1], 2, lazy_gather_double((const double*)p[0], -3, 3), 3);");
  void* const pointers[] = {&from[100], to.data()};

  kernel(pointers, nullptr, nullptr, 0, 0);

  EXPECT_EQ(to[0], 100);
  EXPECT_EQ(to[2], 97);
  EXPECT_EQ(to[4], 94);
  EXPECT_EQ(to[6], -1);
  EXPECT_EQ(to[1], -1);
}

TEST_P(PreludeOnTargetTest, ReversedElementsAreThoseBeforeAnAddress) {
  std::vector<double> from(200), to(size_t(lanes()), -1);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i);
  const KernelFunction kernel =
      compile({"lazy_load_reversed_double", "lazy_store_double"},
              "lazy_store_double((double*)p[1], lazy_load_reversed_double((const double*)p[0], "
              "int(end)));");
  void* const pointers[] = {&from[100], to.data()};

  for (int n = 0; n <= lanes(); ++n) {
    kernel(pointers, nullptr, nullptr, 0, n);

    for (int i = 0; i < lanes(); ++i) EXPECT_EQ(to[size_t(i)], i < n ? 100 - i : 0) << n;
  }
}

TEST_P(PreludeOnTargetTest, LanesAreReduced) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x(lanes());
  for (int i = 0; i < lanes(); ++i) x[i] = static_cast<float>(i + 1);
  std::vector<float> with_nan = x;
  with_nan.back() = nan;
  std::vector<float> result(5);
  const KernelFunction kernel = compile(
      {"lazy_load_float", "lazy_hsum:v_float", "lazy_hmin:v_float", "lazy_hmax:v_float",
       "lazy_hor:v_bool", "lazy_hand:v_bool", "lazy_is_nan:v_float"},
      "auto* result = (float*)p[2];\n"
      "auto x = lazy_load_float((const float*)p[0]), y = lazy_load_float((const float*)p[1]);\n"
      "result[0] = lazy_hsum(x); result[1] = lazy_hmax(x); result[2] = lazy_hmin(y);\n"
      "result[3] = lazy_hor(lazy_is_nan(y)); result[4] = lazy_hand(lazy_is_nan(y));");
  void* const pointers[] = {x.data(), with_nan.data(), result.data()};

  kernel(pointers, nullptr, nullptr, 0, 0);

  EXPECT_EQ(result[0], static_cast<float>(lanes() * (lanes() + 1)) / 2);
  EXPECT_EQ(result[1], static_cast<float>(lanes()));
  EXPECT_TRUE(std::isnan(result[2]));
  EXPECT_EQ(result[3], 1);
  EXPECT_EQ(result[4], 0);
}

}  // namespace
}  // namespace torch_lazy
