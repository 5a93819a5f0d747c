// Printed scans compute what the loop IR says, on every CPU target of this machine.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

struct ScanCase {
  Op op;
  Type type;
  Axis axis;
};

class Scan : public testing::TestWithParam<ScanCase> {
 protected:
  Scan() : builder(GetParam().axis, {slot(0)}, {slot(1)}, Size::constant(64)) {
    builder.kernel.size_slots = 2;
  }

  // Of a matrix along whose rows the lanes run: rows are contiguous, or columns.
  std::vector<Size> matrix() const {
    if (GetParam().axis == Axis::kReduction) return {slot(1), one()};
    return {one(), slot(0)};
  }

  LoopBuilder builder;
};

TEST_P(Scan, OfAMatrix) {
  const auto [op, type, axis] = GetParam();
  const uint32_t x = builder.input(type), y = builder.output(type);
  builder.store(y, matrix(), builder.op(op, {builder.load(x, matrix())}));

  for (const int64_t parallel : {1, 5, 70})
    for (const int64_t along : {0, 1, 3, 16, 17, 150})
      expect_as_evaluated(builder.kernel, {{random_elements(type, parallel * along),
                                            Elements(type, parallel * along)},
                                           {parallel, along},
                                           {}});
}

TEST_P(Scan, ThatIsReducedAndReadAgain) {
  const auto [op, type, axis] = GetParam();
  const uint32_t x = builder.input(type), y = builder.output(type), z = builder.output(type);
  const ExprId value = builder.load(x, matrix());
  const ExprId scan = builder.op(op, {value});
  const ExprId greatest = builder.op(Op::kReduceMax, {builder.op(Op::kSub, {scan, value})});
  builder.store(y, {one()}, greatest);
  builder.store(z, matrix(), builder.op(Op::kMax, {scan, greatest}));

  for (const int64_t along : {1, 40})
    expect_as_evaluated(builder.kernel, {{random_elements(type, 21 * along), Elements(type, 21),
                                          Elements(type, 21 * along)},
                                         {21, along},
                                         {}});
}

TEST_P(Scan, OfWhatIsTheSameInAllSteps) {
  const auto [op, type, axis] = GetParam();
  const uint32_t x = builder.input(type), y = builder.output(type);
  const ExprId value = builder.load(x, {Size::constant(0), Size::constant(0)});
  builder.store(y, matrix(), builder.op(op, {value}));

  expect_as_evaluated(builder.kernel,
                      {{random_elements(type, 1), Elements(type, 21 * 19)}, {21, 19}, {}});
}

std::vector<ScanCase> scan_cases() {
  std::vector<ScanCase> cases;
  for (const Axis axis : {Axis::kParallel, Axis::kReduction})
    for (const Type type : {Type::kFloat, Type::kDouble, Type::kInt64, Type::kInt32, Type::kInt16})
      for (const Op op : {Op::kScanSum, Op::kScanProd}) cases.push_back({op, type, axis});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Scan, testing::ValuesIn(scan_cases()), [](const auto& info) {
  return std::string(name_of(info.param.op)) + "_" + name_of(info.param.type) +
         (info.param.axis == Axis::kParallel ? "_columns" : "_rows");
});

TEST(PrintedScan, OfFewStepsThatAreWrittenOut) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {Size::constant(6)}, Size::constant(64));
  builder.kernel.size_slots = 1;
  const uint32_t x = builder.input(Type::kFloat), y = builder.output(Type::kFloat);
  const ExprId scan = builder.op(Op::kScanSum, {builder.load(x, {Size::constant(6), one()})});
  builder.store(y, {Size::constant(6), one()}, scan);

  expect_as_evaluated(
      builder.kernel,
      {{random_elements(Type::kFloat, 6 * 37), Elements(Type::kFloat, 6 * 37)}, {37}, {}});
}

}  // namespace
}  // namespace torch_lazy::codegen
