// What an operation is, whatever stands before it.

#include "tape/signature.h"

#include <gtest/gtest.h>

#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::TapeBuilder;

// The sum of labels, a product with it, and operations on that.
Tape window(int64_t labels, int64_t width = 3) {
  TapeBuilder builder;
  const auto label = builder.input(at::ones({labels})), x = builder.input(at::ones({2, width}));
  const auto total = builder.call("aten::sum", "", {label, c10::IValue()})[0];
  auto y = builder.call("aten::mul", "Tensor", {x, total})[0];
  for (const char* name : {"aten::neg", "aten::abs", "aten::neg"})
    y = builder.call(name, "", {y})[0];
  return builder.tape.prefix(builder.tape.size());
}

TEST(Signature, IsTheOperationWhereverItStands) {
  const Tape a = window(3), b = window(4);

  EXPECT_NE(signature(a, 0), signature(b, 0));  // of labels of another size
  for (size_t i = 1; i < a.size(); ++i) EXPECT_EQ(signature(a, i), signature(b, i));
  EXPECT_NE(signature(a, 2), signature(a, 3));             // another operator
  EXPECT_NE(signature(a, 1), signature(window(3, 5), 1));  // another size
  EXPECT_EQ(signature(a, 2), signature(a, 4));
}

TEST(Signature, LeavesOutWhatMayBeADynamicScalar) {
  const auto product = [](const at::Tensor& x, const at::Scalar& number) {
    TapeBuilder builder;
    builder.call("aten::mul", "Tensor", {builder.input(x), tests::number(number)});
    return signature(builder.tape, 0);
  };
  const at::Tensor x = at::ones({2});

  EXPECT_EQ(product(x, 0.5), product(x, 0.25));
  EXPECT_NE(product(x, int64_t(2)), product(x, int64_t(3)));
  EXPECT_NE(product(x.to(at::kBFloat16), 0.5), product(x.to(at::kBFloat16), 0.25));
}

TEST(Signature, KeepsNumbersOfArgumentsThatAreNone) {
  const auto power = [](double exponent) {
    TapeBuilder builder;
    builder.call("aten::pow", "Tensor_Scalar", {builder.input(at::ones({2})), exponent});
    return signature(builder.tape, 0);
  };

  EXPECT_EQ(power(1.5), power(1.5));
  EXPECT_NE(power(1.5), power(1.25));
}

TEST(SignatureOfACall, IsTheSameForInputsAndWhatAWindowHasNamed) {
  TapeBuilder one, two;
  one.call("aten::neg", "", {one.call("aten::abs", "", {one.input(at::ones({2, 3}))})[0]});
  two.call("aten::neg", "", {two.input(at::ones({2, 3}))});

  EXPECT_EQ(signatures_of_calls(one.tape)[1], signatures_of_calls(two.tape)[0]);
  EXPECT_NE(signature(one.tape, 1), signature(two.tape, 0));
}

TEST(SignatureOfACall, TellsWhatValuesLookLike) {
  const auto sum_of = [](int64_t length) {
    TapeBuilder builder;
    const Handle x = builder.call("aten::abs", "", {builder.input(at::ones({length}))})[0];
    builder.call("aten::sum", "", {x, c10::IValue()});
    return signatures_of_calls(builder.tape)[1];
  };

  EXPECT_EQ(sum_of(3), sum_of(3));
  EXPECT_NE(sum_of(3), sum_of(4));
}

}  // namespace
}  // namespace torch_lazy
