// Products by oneDNN against ATen's, and which calls are oneDNN's.

#include "runtime/onednn_products.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "runtime/metrics.h"

namespace torch_lazy {
namespace {

// For all tests of this program.
const bool registered = (register_onednn_products(), true);

// As many calls as admit any shape.
constexpr int64_t kCalls = ProductAdmission::kCallsBetween * ProductAdmission::kMostShapes + 1;

at::Tensor onednn_mm(const at::Tensor& a, const at::Tensor& b) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_lazy::onednn_mm", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(a, b);
}

at::Tensor onednn_addmm(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("torch_lazy::onednn_addmm", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
  return op.call(bias, a, b);
}

void expect_product_of(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor bias = at::randn({b.size(1)});
  for (int64_t call = 0; call < kCalls; ++call) {
    const at::Tensor product = onednn_mm(a, b), sum = onednn_addmm(bias, a, b);
    ASSERT_TRUE(product.is_contiguous());
    ASSERT_TRUE(at::allclose(product, at::mm(a, b), 1e-5, 1e-4)) << "call " << call;
    ASSERT_TRUE(at::allclose(sum, at::addmm(bias, a, b), 1e-5, 1e-4)) << "call " << call;
  }
}

TEST(OnednnProducts, AreAtensProductsForEveryLayout) {
  expect_product_of(at::randn({24, 40}), at::randn({40, 33}));
  expect_product_of(at::randn({24, 40}), at::randn({33, 40}).t());
  expect_product_of(at::randn({40, 24}).t(), at::randn({40, 33}));
  expect_product_of(at::randn({40, 24}).t(), at::randn({33, 40}).t());
  expect_product_of(at::randn({24, 80}).slice(1, 0, 40), at::randn({40, 33}));
}

TEST(OnednnProducts, AreOnednnsOnceTheirShapeIsAdmitted) {
  if (!onednn_multiplies_faster()) GTEST_SKIP() << "only where MKL has no AVX-512 code";
  const at::Tensor a = at::randn({50, 60}), b = at::randn({60, 70});
  for (int64_t call = 0; call < kCalls; ++call) onednn_mm(a, b);
  const int64_t before = metrics().onednn_products;

  onednn_mm(a, b);

  EXPECT_EQ(metrics().onednn_products, before + 1);
}

TEST(OnednnProducts, ABiasMayHaveEverySizeThatExpands) {
  const at::Tensor a = at::randn({16, 16}), b = at::randn({16, 16}), bias = at::randn({16, 1});

  for (int64_t call = 0; call < kCalls; ++call)
    ASSERT_TRUE(at::allclose(onednn_addmm(bias, a, b), at::addmm(bias, a, b), 1e-5, 1e-4));
}

TEST(OnednnProducts, AreAtensBitForBitWhereOnednnIsSwitchedOff) {
  const at::Tensor a = at::randn({64, 300}), b = at::randn({300, 64});
  at::globalContext().setUserEnabledMkldnn(false);

  for (int64_t call = 0; call < kCalls; ++call)
    EXPECT_TRUE(at::equal(onednn_mm(a, b), at::mm(a, b)));

  at::globalContext().setUserEnabledMkldnn(true);
}

TEST(OnednnProducts, ErrorsAreAtens) {
  EXPECT_THROW(onednn_mm(at::randn({2, 3}), at::randn({4, 5})), c10::Error);
}

ProductShape shape(int64_t rows) {
  return {rows, 8, 8, {false, false}, false, 1};
}

// The number of the first call that is admitted, from 0.
int64_t first_admitted(ProductAdmission& admission, const ProductShape& shape) {
  for (int64_t call = 0; call < 1000; ++call)
    if (admission.admit(shape)) return call;
  return -1;
}

TEST(ProductAdmission, EachShapeBeginsTwoCallsLaterThanTheOneBefore) {
  ProductAdmission admission;

  EXPECT_EQ(first_admitted(admission, shape(1)), 2);
  EXPECT_EQ(first_admitted(admission, shape(2)), 4);
  EXPECT_EQ(first_admitted(admission, shape(3)), 6);
}

TEST(ProductAdmission, AnAdmittedShapeStaysAdmitted) {
  ProductAdmission admission;
  first_admitted(admission, shape(1));

  EXPECT_TRUE(admission.admit(shape(1)));
}

TEST(ProductAdmission, AnotherLayoutOrThreadCountIsAnotherShape) {
  ProductAdmission admission;
  first_admitted(admission, shape(1));
  ProductShape transposed = shape(1), threads = shape(1), sum = shape(1);
  transposed.transposed[1] = true;
  threads.threads = 2;
  sum.sum = true;

  for (const ProductShape& other : {transposed, threads, sum}) EXPECT_FALSE(admission.admit(other));
}

TEST(ProductAdmission, TheFirstShapesAloneAreAdmitted) {
  ProductAdmission admission;
  for (int64_t rows = 0; rows < ProductAdmission::kMostShapes; ++rows)
    EXPECT_GE(first_admitted(admission, shape(rows)), 0);

  EXPECT_EQ(first_admitted(admission, shape(ProductAdmission::kMostShapes)), -1);
}

}  // namespace
}  // namespace torch_lazy
