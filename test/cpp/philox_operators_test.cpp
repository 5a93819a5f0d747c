#include "ops/philox_operators.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "ops/philox.h"

namespace torch_lazy {
namespace {

// For all tests of this program: graphs name these operators.
const bool philox_registered = (register_philox_operators(), true);

at::Tensor draw(at::Tensor self, int64_t key, double p) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("torch_lazy::philox_bernoulli_", "")
                      .typed<at::Tensor&(at::Tensor&, const at::Tensor&, double)>();
  return op.call(self, at::scalar_tensor(key, at::kLong), p);
}

TEST(Philox, HasTheKnownAnswersOfRandom123) {
  using Block = std::array<uint32_t, 2>;
  EXPECT_EQ(Philox::block({0, 0}, 0), (Block{0xff1dae59, 0x6cd10df2}));
  EXPECT_EQ(Philox::block({0xffffffff, 0xffffffff}, 0xffffffff), (Block{0x2c3f628b, 0xab4fd7ad}));
  EXPECT_EQ(Philox::block({0x243f6a88, 0x85a308d3}, 0x13198a2e), (Block{0xdd7ce038, 0xf62a4c12}));
}

TEST(Philox, BothHalvesOfTheKeyAndOfThePositionCount) {
  const float origin = philox_uniform(1, 1);
  EXPECT_NE(origin, philox_uniform(2, 1));
  EXPECT_NE(origin, philox_uniform(1 + (uint64_t{1} << 32), 1));
  EXPECT_NE(origin, philox_uniform(1, 2));
  EXPECT_NE(origin, philox_uniform(1, 1 + (uint64_t{1} << 32)));
}

TEST(PhiloxOperators, ElementsOfADrawAreThoseOfTheStream) {
  const at::Tensor drawn = draw(at::empty({3000}), 99, 0.25);
  for (int64_t i = 0; i < 3000; ++i)
    ASSERT_EQ(drawn[i].item<float>(), float(philox_uniform(99, uint64_t(i)) < 0.25f)) << i;
}

TEST(PhiloxOperators, DrawsDoNotDependOnStridesOrDtype) {
  const at::Tensor plain = draw(at::empty({40, 50}), 7, 0.5);
  EXPECT_TRUE(at::equal(draw(at::empty({50, 40}).t(), 7, 0.5), plain));
  for (const at::ScalarType dtype : {at::kBool, at::kByte, at::kLong, at::kHalf, at::kDouble})
    EXPECT_TRUE(at::equal(draw(at::empty({40, 50}, dtype), 7, 0.5).to(at::kFloat), plain)) << dtype;
}

TEST(PhiloxOperators, DrawOnesWithTheProbabilityGiven) {
  // 1e6 draws: the standard deviation of the mean is below 5e-4.
  for (const double p : {0.0, 0.1, 0.9, 1.0})
    EXPECT_NEAR(draw(at::empty({1000, 1000}), 3, p).mean().item<double>(), p, p * (1 - p) * 0.02);
}

TEST(PhiloxOperators, SayWhatAKeyIs) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("torch_lazy::philox_uniform", "")
                      .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  const at::Tensor position = at::arange(4);
  try {
    op.call(position, at::zeros({2}));
    FAIL() << "a list of floats was taken for a key";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("must be an int64 tensor without dimensions"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace torch_lazy
