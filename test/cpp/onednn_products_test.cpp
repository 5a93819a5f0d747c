// Products by oneDNN against ATen's, and which calls are oneDNN's.

#include "backend/cpu/onednn_products.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend/cpu/product_choice.h"
#include "base/metrics.h"

namespace torch_lazy {
namespace {

// For all tests of this program.
const bool products_registered = (register_onednn_products(), true);

at::Tensor call(const char* name, const at::Tensor& a, const at::Tensor& b) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>()
      .call(a, b);
}

at::Tensor onednn_mm(const at::Tensor& a, const at::Tensor& b) {
  return call("torch_lazy::onednn_mm", a, b);
}

at::Tensor onednn_bmm(const at::Tensor& a, const at::Tensor& b) {
  return call("torch_lazy::onednn_bmm", a, b);
}

at::Tensor onednn_addmm(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("torch_lazy::onednn_addmm", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
  return op.call(bias, a, b);
}

// What a product is when oneDNN first computes it, if it ever does.
at::Tensor by_onednn(const std::function<at::Tensor()>& product) {
  const int64_t before = metrics().onednn_products;
  at::Tensor result;
  for (int call = 0; call < 1000 && metrics().onednn_products == before; ++call) result = product();
  return result;
}

void expect_product_of(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor bias = at::randn({b.size(1)});

  const at::Tensor product = by_onednn([&] { return onednn_mm(a, b); });
  const at::Tensor sum = by_onednn([&] { return onednn_addmm(bias, a, b); });

  EXPECT_TRUE(product.is_contiguous());
  EXPECT_TRUE(at::allclose(product, at::mm(a, b), 1e-5, 1e-4));
  EXPECT_TRUE(at::allclose(sum, at::addmm(bias, a, b), 1e-5, 1e-4));
}

TEST(OnednnProducts, AreAtensProductsForEveryLayout) {
  expect_product_of(at::randn({96, 140}), at::randn({140, 113}));
  expect_product_of(at::randn({96, 140}), at::randn({113, 140}).t());
  expect_product_of(at::randn({140, 96}).t(), at::randn({140, 113}));
  expect_product_of(at::randn({140, 96}).t(), at::randn({113, 140}).t());
  expect_product_of(at::randn({96, 180}).slice(1, 0, 140), at::randn({140, 113}));
}

void expect_products_of(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor products = by_onednn([&] { return onednn_bmm(a, b); });

  EXPECT_TRUE(products.is_contiguous());
  EXPECT_TRUE(at::allclose(products, at::bmm(a, b), 1e-5, 1e-4));
}

TEST(OnednnProducts, OfBatchesAreAtensForEveryLayout) {
  expect_products_of(at::randn({7, 64, 80}), at::randn({7, 80, 48}));
  expect_products_of(at::randn({7, 64, 80}), at::randn({7, 48, 80}).transpose(1, 2));
  expect_products_of(at::randn({7, 80, 64}).transpose(1, 2), at::randn({7, 80, 48}));
  expect_products_of(at::randn({64, 7, 80}).transpose(0, 1), at::randn({7, 80, 48}));
}

TEST(OnednnProducts, AreOnednnsWhereItMultipliesFaster) {
  if (!onednn_multiplies_faster()) GTEST_SKIP() << "only where MKL has no AVX-512 code";
  const at::Tensor a = at::randn({150, 160}), b = at::randn({160, 170});
  const int64_t before = metrics().onednn_products;

  by_onednn([&] { return onednn_mm(a, b); });

  EXPECT_EQ(metrics().onednn_products, before + 1);
}

TEST(OnednnProducts, AreOnTrialUntilTheirShapeIsChosenFor) {
  if (!onednn_multiplies_faster()) GTEST_SKIP() << "only where MKL has no AVX-512 code";
  const at::Tensor a = at::randn({152, 160}), b = at::randn({160, 170});
  int64_t before = -1;

  int calls = 0;
  for (; calls < 1000 && products_on_trial() != before; ++calls) {
    before = products_on_trial();
    onednn_mm(a, b);
  }

  EXPECT_GT(calls, 2 * ProductChoice::kTimedCalls);
  EXPECT_LT(calls, 1000);
}

TEST(OnednnProducts, ABiasMayHaveEverySizeThatExpands) {
  const at::Tensor a = at::randn({128, 128}), b = at::randn({128, 128}), bias = at::randn({128, 1});

  const at::Tensor sum = by_onednn([&] { return onednn_addmm(bias, a, b); });

  EXPECT_TRUE(at::allclose(sum, at::addmm(bias, a, b), 1e-5, 1e-4));
}

TEST(OnednnProducts, AreAtensBitForBitWhereOnednnIsSwitchedOff) {
  const at::Tensor a = at::randn({128, 300}), b = at::randn({300, 128});
  at::globalContext().setUserEnabledMkldnn(false);

  const at::Tensor product = by_onednn([&] { return onednn_mm(a, b); });

  EXPECT_TRUE(at::equal(product, at::mm(a, b)));
  at::globalContext().setUserEnabledMkldnn(true);
}

TEST(OnednnProducts, ErrorsAreAtens) {
  EXPECT_THROW(onednn_mm(at::randn({2, 3}), at::randn({4, 5})), c10::Error);
  EXPECT_THROW(onednn_bmm(at::randn({2, 3, 4}), at::randn({3, 4, 5})), c10::Error);
}

}  // namespace
}  // namespace torch_lazy
