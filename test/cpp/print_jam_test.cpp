// Jammed steps compute what the loop IR says, whatever is left at the end of the jammed dimension,
// on every CPU target of this machine.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

// Sizes: rows, inner, columns.
constexpr uint32_t kRows = 0, kInner = 1, kColumns = 2;

struct ProductCase {
  Type type;
  Axis axis;
  int steps;
  bool short_sums;
  int vectors = Jam::kMostVectors;
};

class JammedProduct : public testing::TestWithParam<ProductCase> {};

// A product of matrices, with lanes along the columns or along what is summed; `jammed`: of the
// parallel dimensions, rows and columns.
LoopBuilder product(const ProductCase& of, int jammed) {
  LoopBuilder builder(of.axis, {slot(kRows), slot(kColumns)}, {slot(kInner)}, Size::constant(64));
  builder.kernel.size_slots = 3;
  builder.kernel.short_sums = of.short_sums;
  builder.kernel.jam = {jammed, of.steps, of.vectors};
  return builder;
}

KernelArguments arguments_of(Type type, int64_t rows, int64_t inner, int64_t columns) {
  return {{random_elements(type, rows * inner), random_elements(type, inner * columns, 2),
           random_elements(type, rows, 3), Elements(type, rows * columns)},
          {rows, inner, columns},
          {}};
}

void expect_products_as_evaluated(const Kernel& kernel, Type type) {
  const int64_t longest = kernel.short_sums ? 64 : 150;
  for (const auto& [rows, inner, columns] : std::vector<std::array<int64_t, 3>>{
           {7, 0, 20}, {1, longest, 33}, {16, 1, 70}, {7, 40, 1}, {7, longest, 70}})
    expect_as_evaluated(kernel, arguments_of(type, rows, inner, columns), 1e-4);
}

TEST_P(JammedProduct, WithWhatFollowsFromItsSums) {
  LoopBuilder builder = product(GetParam(), /*jammed=*/0);
  const Type type = GetParam().type;
  const uint32_t a = builder.input(type), b = builder.input(type), scale = builder.input(type);
  const bool along_rows = GetParam().axis == Axis::kReduction;
  const ExprId left = builder.load(a, {slot(kInner), Size::constant(0), one()});
  const ExprId right = along_rows ? builder.load(b, {Size::constant(0), slot(kInner), one()})
                                  : builder.load(b, {Size::constant(0), one(), slot(kColumns)});
  const ExprId sum = builder.op(Op::kReduceSum, {builder.op(Op::kMul, {left, right})});
  const ExprId factor = builder.load(scale, {one(), Size::constant(0), Size::constant(0)});
  const uint32_t out = builder.output(type);
  builder.store(out, {slot(kColumns), one()}, builder.op(Op::kMul, {sum, factor}));
  expect_products_as_evaluated(builder.kernel, type);
}

// A product whose left rows are scaled by a factor each.
struct ScaledProduct {
  explicit ScaledProduct(const ProductCase& of) : builder(product(of, /*jammed=*/0)) {
    const uint32_t a = builder.input(of.type), b = builder.input(of.type);
    const uint32_t scale = builder.input(of.type);
    const bool along_rows = of.axis == Axis::kReduction;
    factor = builder.load(scale, {one(), Size::constant(0), Size::constant(0)});
    const ExprId left =
        builder.op(Op::kMul, {builder.load(a, {slot(kInner), Size::constant(0), one()}), factor});
    const ExprId right = along_rows ? builder.load(b, {Size::constant(0), slot(kInner), one()})
                                    : builder.load(b, {Size::constant(0), one(), slot(kColumns)});
    sum = builder.op(Op::kReduceSum, {builder.op(Op::kMul, {left, right})});
    out = builder.output(of.type);
  }

  LoopBuilder builder;
  ExprId factor = 0, sum = 0;
  uint32_t out = 0;
};

// So much that it is not written out for each step.
TEST_P(JammedProduct, WithWhatIsDearAndFollowsFromItsSums) {
  if (!is_floating(GetParam().type)) return;
  ScaledProduct scaled(GetParam());
  LoopBuilder& builder = scaled.builder;
  const ExprId bounded = builder.op(Op::kTanh, {builder.op(Op::kTanh, {scaled.sum})});
  builder.store(scaled.out, {slot(kColumns), one()},
                builder.op(Op::kMul, {bounded, scaled.factor}));
  expect_products_as_evaluated(builder.kernel, GetParam().type);
}

TEST_P(JammedProduct, OfWhatEachRowIsScaledBy) {
  ScaledProduct scaled(GetParam());
  scaled.builder.store(scaled.out, {slot(kColumns), one()}, scaled.sum);
  expect_products_as_evaluated(scaled.builder.kernel, GetParam().type);
}

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const Axis axis : {Axis::kParallel, Axis::kReduction}) {
    for (const Type type : {Type::kFloat, Type::kDouble, Type::kInt64})
      cases.push_back({type, axis, 2, /*short_sums=*/false});
    cases.push_back({Type::kFloat, axis, 8, /*short_sums=*/true});
    cases.push_back({Type::kFloat, axis, 8, /*short_sums=*/false, /*vectors=*/1});
  }
  return cases;
}

std::string name_of_case(const testing::TestParamInfo<ProductCase>& info) {
  const ProductCase& of = info.param;
  return std::string(name_of(of.type)) + (of.axis == Axis::kParallel ? "_columns_" : "_inner_") +
         std::to_string(of.steps) + (of.short_sums ? "_short" : "") +
         (of.vectors == 1 ? "_one_vector" : "");
}

INSTANTIATE_TEST_SUITE_P(All, JammedProduct, testing::ValuesIn(product_cases()), name_of_case);

TEST(Jam, OfMaximaOverDifferences) {
  LoopBuilder builder = product({Type::kFloat, Axis::kParallel, 5, false}, /*jammed=*/0);
  const uint32_t a = builder.input(Type::kFloat), b = builder.input(Type::kFloat);
  builder.input(Type::kFloat);
  const ExprId left = builder.load(a, {slot(kInner), Size::constant(0), one()});
  const ExprId right = builder.load(b, {Size::constant(0), one(), slot(kColumns)});
  const ExprId difference = builder.op(Op::kAbs, {builder.op(Op::kSub, {left, right})});
  const uint32_t out = builder.output(Type::kFloat);
  builder.store(out, {slot(kColumns), one()}, builder.op(Op::kReduceMax, {difference}));
  expect_as_evaluated(builder.kernel, arguments_of(Type::kFloat, 12, 9, 50));
}

// `steps` are as many as the lanes of one of the targets: it transposes squares in registers, the
// others load elements one by one.
TEST(Jam, OfAMatrixThatIsTransposed) {
  for (const Type type :
       {Type::kFloat, Type::kInt32, Type::kHalf, Type::kDouble, Type::kInt64, Type::kUInt8}) {
    for (const int steps : {4, 8, 16}) {
      LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, Size::constant(64));
      builder.kernel.size_slots = 2;
      builder.kernel.jam = {0, steps};
      const uint32_t x = builder.input(type), y = builder.input(type);
      const ExprId transposed = builder.load(x, {one(), slot(0)});
      const ExprId along = builder.load(y, {slot(1), one()});
      const uint32_t copy = builder.output(type), greater = builder.output(Type::kBool);
      builder.store(copy, {slot(1), one()}, transposed);
      const bool is_half = type == Type::kHalf;
      const auto computed = [&](ExprId id) {
        return is_half ? builder.cast(id, Type::kFloat) : id;
      };
      builder.store(greater, {slot(1), one()},
                    builder.op(Op::kGreater, {computed(transposed), computed(along)}));
      for (const int64_t rows : {1, 15, 33})
        for (const int64_t columns : {1, 16, 70}) {
          const int64_t elements = rows * columns;
          expect_as_evaluated(builder.kernel,
                              {{random_elements(type, elements), random_elements(type, elements, 2),
                                Elements(type, elements), Elements(Type::kBool, elements)},
                               {rows, columns},
                               {}});
        }
    }
  }
}

}  // namespace
}  // namespace torch_lazy::codegen
