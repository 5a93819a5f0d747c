// The kernels used last are kept, within a number of bytes.

#include "backend/cpu/kernel_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace torch_lazy {
namespace {

KernelCache::Kernel kernel_of(size_t object_bytes) {
  return std::make_shared<const CompiledKernel>(nullptr, std::string(object_bytes, 'x'), nullptr);
}

TEST(KernelCache, DropsTheKernelsUsedLongestAgo) {
  KernelCache cache(1000);
  int made = 0;
  bool hit = false;
  const auto get = [&](const char* name) {
    cache.get(
        {KernelTarget::kHost, name, ""}, [&] { return ++made, kernel_of(400); }, hit);
    return hit;
  };
  get("a");
  get("b");
  get("a");
  get("c");  // more than fits
  EXPECT_EQ(made, 3);
  EXPECT_TRUE(get("a"));
  EXPECT_FALSE(get("b"));
}

TEST(KernelCache, MakesAgainWhatFailed) {
  KernelCache cache(1000);
  bool hit = false;
  const KernelCache::Key key{KernelTarget::kHost, "name", "source"};
  const auto fail = []() -> KernelCache::Kernel { throw std::runtime_error("failed"); };
  EXPECT_THROW(cache.get(key, fail, hit), std::runtime_error);
  EXPECT_NE(cache.get(
                key, [] { return kernel_of(1); }, hit),
            nullptr);
  EXPECT_FALSE(hit);
}

}  // namespace
}  // namespace torch_lazy
