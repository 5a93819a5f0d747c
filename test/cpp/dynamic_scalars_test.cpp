// Which numbers of a tape may become arguments, which do, and what a trace with them matches.

#include "tape/dynamic_scalars.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/compiled_trace.h"
#include "tape_builder.h"
#include "trace/known_traces.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::number;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::vector<double> dynamic(const Tape& tape) {
  std::vector<double> numbers;
  for (const uint32_t word : dynamic_scalar_words(tape)) {
    double value;
    std::memcpy(&value, &tape.all_words()[word], sizeof value);
    numbers.push_back(value);
  }
  return numbers;
}

// (x * a + y * b), then `last` applied to it.
Tape scaled_sum(double a, double b, const char* last = "aten::relu") {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3})), y = window.input(at::ones({3}));
  const Handle scaled = window.call("aten::mul", "Tensor", {x, number(a)})[0];
  const Handle sum = window.call("aten::add", "Tensor", {scaled, y, c10::IValue(b)})[0];
  window.call(last, "", {sum});
  return window.tape;
}

std::vector<uint64_t> numbers_of(const Tape& tape) {
  std::vector<uint64_t> bits;
  for (const uint32_t word : dynamic_scalar_words(tape)) bits.push_back(tape.all_words()[word]);
  return bits;
}

std::shared_ptr<CompiledTrace> trace_of(const Tape& tape, const std::vector<size_t>& dynamic) {
  const auto words = dynamic_scalar_words(tape);
  DynamicScalars dynamic_scalars;
  for (const size_t i : dynamic) dynamic_scalars.push_back({words[i], words[i]});
  Tape masked = tape.prefix(tape.size());
  for (const DynamicScalar& number : dynamic_scalars) masked.clear_word(number.word);
  return std::make_shared<CompiledTrace>(std::move(masked), dynamic_scalars, std::vector<bool>(),
                                         TraceConditions());
}

// Records the tape against what is known, operation by operation, as a recorder does.
const CompiledTrace* followed(KnownTraces& known, const Tape& tape) {
  Cursor cursor = known.start();
  for (size_t i = 0; i < tape.size(); ++i) {
    const Tape recorded = tape.prefix(i + 1);
    if (!cursor.advance(recorded) && !cursor.find_again(recorded, false)) return nullptr;
  }
  if (!cursor.end() && !cursor.find_again(tape, true)) return nullptr;
  return cursor.end()->trace.get();
}

TEST(PromotableWords, AreFloatingPointNumbersInListedArguments) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3})), y = window.input(at::ones({3}));
  window.call("aten::add", "Tensor", {x, number(1.5), 1});
  window.call("aten::addcdiv_", "", {x, y, y, 2.5});
  window.call("aten::div", "Tensor", {x, number(3.5)});
  window.call("aten::div", "Tensor_mode", {x, number(4.5), c10::IValue("floor")});
  window.call("aten::pow", "Tensor_Scalar", {x, 5.5});
  window.call("aten::clamp", "", {x, 6.5, c10::IValue()});
  window.call("aten::mul", "Tensor", {x, number(int64_t(7))});

  EXPECT_EQ(dynamic(window.tape), (std::vector<double>{1.5, 2.5, 3.5, 6.5}));
}

TEST(PromotableWords, AreOfOperationsInFloat32AndFloat64) {
  TapeBuilder window;
  const Handle half = window.input(at::ones({3}, at::kBFloat16));
  const Handle wide = window.input(at::ones({3}, at::kDouble));
  const Handle integers = window.input(at::ones({3}, at::kLong));
  window.call("aten::mul", "Tensor", {half, number(1.5)});
  window.call("aten::mul_", "Tensor", {half, number(2.5)});
  window.call("aten::mul_", "Tensor", {wide, number(3.5)});
  window.call("aten::mul", "Tensor", {integers, number(4.5)});
  window.call("aten::fill_", "Scalar", {integers, 5.5});

  EXPECT_EQ(dynamic(window.tape), (std::vector<double>{3.5, 4.5}));
}

TEST(PromotableWords, AreElementsOfForeachLists) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3})), y = window.input(at::ones({2}));
  const Handle half = window.input(at::ones({2}, at::kBFloat16));
  c10::impl::GenericList scalars(c10::NumberType::get());
  scalars.push_back(1.5);
  scalars.push_back(int64_t(2));
  scalars.push_back(2.5);
  window.call("aten::_foreach_mul_", "ScalarList", {Handles{x, y, x}, c10::IValue(scalars)});
  window.call("aten::_foreach_mul_", "Scalar", {Handles{x, y}, 3.5});
  window.call("aten::_foreach_mul_", "Scalar", {Handles{x, half}, 4.5});

  EXPECT_EQ(dynamic(window.tape), (std::vector<double>{1.5, 2.5, 3.5}));
}

TEST(PromotableWords, AreNoNan) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3}));
  window.call("aten::mul", "Tensor", {x, number(std::nan(""))});
  window.call("aten::mul", "Tensor", {x, number(INFINITY)});

  EXPECT_EQ(dynamic(window.tape), (std::vector<double>{INFINITY}));
}

TEST(TapeStructure, HashesAlikeWhenOnlyPromotableNumbersDiffer) {
  Tape one = scaled_sum(0.5, 2), two = scaled_sum(0.25, 3),
       other = scaled_sum(0.5, 2, "aten::tanh");
  const Tape::Hash before = one.hash();

  EXPECT_EQ(one.hash_without(dynamic_scalar_words(one)),
            two.hash_without(dynamic_scalar_words(two)));
  EXPECT_FALSE(one.hash_without(dynamic_scalar_words(one)) ==
               other.hash_without(dynamic_scalar_words(other)));
  EXPECT_EQ(one.hash(), before);
  EXPECT_FALSE(one.hash() == two.hash());
}

bool add(ScalarHistory& history, const std::vector<uint64_t>& bits) {
  return history.add(bits);
}

DynamicScalars dynamic_scalars(const ScalarHistory& history, const std::vector<uint32_t>& words) {
  return history.dynamic_scalars(words);
}

TEST(ScalarHistory, PromotesWhatChanged) {
  ScalarHistory history;
  add(history, {1, 2, 3});
  EXPECT_FALSE(add(history, {1, 2, 3}));
  EXPECT_TRUE(dynamic_scalars(history, {10, 20, 30}).empty());

  EXPECT_TRUE(add(history, {1, 5, 3}));
  EXPECT_EQ(dynamic_scalars(history, {10, 20, 30}), (DynamicScalars{{20, 20}}));

  EXPECT_TRUE(add(history, {7, 2, 3}));
  EXPECT_EQ(dynamic_scalars(history, {10, 20, 30}), (DynamicScalars{{10, 10}, {20, 20}}));
  EXPECT_FALSE(add(history, {1, 2, 3}));
  EXPECT_EQ(history.dynamic(), 2u);
}

TEST(ScalarHistory, SharesANumberAmongPlacesThatWereAlwaysEqual) {
  ScalarHistory history;
  add(history, {1, 1, 1, 4});
  EXPECT_TRUE(add(history, {2, 2, 3, 4}));
  EXPECT_EQ(dynamic_scalars(history, {10, 20, 30, 40}),
            (DynamicScalars{{10, 10}, {20, 10}, {30, 30}}));

  EXPECT_TRUE(add(history, {5, 6, 5, 4}));
  EXPECT_EQ(dynamic_scalars(history, {10, 20, 30, 40}),
            (DynamicScalars{{10, 10}, {20, 20}, {30, 30}}));
  // Equal now, but they have been seen to differ.
  EXPECT_FALSE(add(history, {5, 5, 5, 4}));
}

TEST(ScalarHistory, BeginsWithWhatAnEarlierProcessLearnt) {
  const std::vector<uint32_t> words = {4, 8, 12};
  const DynamicScalars learnt = {{4, 4}, {12, 4}};

  auto history = ScalarHistory::remembered(std::vector<uint64_t>{1, 2, 1}, words, learnt);

  ASSERT_TRUE(history);
  EXPECT_EQ(dynamic_scalars(*history, words), learnt);
  EXPECT_FALSE(add(*history, {3, 2, 3}));
  EXPECT_EQ(dynamic_scalars(*history, words), learnt);
  EXPECT_TRUE(add(*history, {3, 2, 4}));
  EXPECT_EQ(dynamic_scalars(*history, words), (DynamicScalars{{4, 4}, {12, 12}}));
}

TEST(ScalarHistory, OfAnEarlierProcessLetsConstantsShareANumberOnceTheyChange) {
  const std::vector<uint32_t> words = {4, 8, 12, 16};

  auto history = ScalarHistory::remembered(std::vector<uint64_t>{1, 2, 1, 2}, words, {{4, 4}});

  ASSERT_TRUE(history);
  EXPECT_EQ(dynamic_scalars(*history, words), (DynamicScalars{{4, 4}}));
  EXPECT_TRUE(add(*history, {5, 3, 1, 3}));
  EXPECT_EQ(dynamic_scalars(*history, words), (DynamicScalars{{4, 4}, {8, 8}, {16, 8}}));
}

TEST(ScalarHistory, BeginsWithNothingThatWasLearntOfOtherWords) {
  const std::vector<uint32_t> words = {4, 8};
  const std::vector<uint64_t> bits = {1, 2};

  EXPECT_FALSE(ScalarHistory::remembered(bits, words, {{5, 5}}));
  EXPECT_FALSE(ScalarHistory::remembered(bits, words, {{8, 9}}));
  EXPECT_FALSE(ScalarHistory::remembered(bits, words, {{16, 16}}));
}

TEST(KnownTraces, MatchAnyNumberWhereOneIsPromoted) {
  KnownTraces known;
  const auto trace = trace_of(scaled_sum(0.5, 2), {0});
  known.insert(trace, std::nullopt);

  EXPECT_EQ(followed(known, scaled_sum(0.5, 2)), trace.get());
  EXPECT_EQ(followed(known, scaled_sum(0.75, 2)), trace.get());
  EXPECT_EQ(followed(known, scaled_sum(0.75, 3)), nullptr);
  EXPECT_EQ(followed(known, scaled_sum(std::nan(""), 2)), nullptr);
}

TEST(KnownTraces, MatchEqualBitsWhereANumberIsShared) {
  const Tape tape = scaled_sum(0.5, 0.5);
  const auto words = dynamic_scalar_words(tape);
  ScalarHistory history;
  history.add(numbers_of(tape));
  history.add(numbers_of(scaled_sum(0.25, 0.25)));
  Tape masked = tape.prefix(tape.size());
  for (const uint32_t word : words) masked.clear_word(word);
  const auto trace = std::make_shared<CompiledTrace>(
      std::move(masked), history.dynamic_scalars(words), std::vector<bool>(), TraceConditions());
  KnownTraces known;
  known.insert(trace, std::nullopt);

  EXPECT_EQ(followed(known, scaled_sum(0.125, 0.125)), trace.get());
  EXPECT_EQ(followed(known, scaled_sum(0.125, 0.25)), nullptr);
}

TEST(KnownTraces, FindTheOtherPathWhenTheFirstThatMatchedEnds) {
  KnownTraces known;
  const auto constants = trace_of(scaled_sum(0.5, 2), {});
  const auto dynamic = trace_of(scaled_sum(0.25, 3), {0, 1});
  const auto other_end = trace_of(scaled_sum(0.5, 2, "aten::tanh"), {});
  known.insert(constants, std::nullopt);
  known.insert(other_end, std::nullopt);
  known.insert(dynamic, std::nullopt);

  EXPECT_EQ(followed(known, scaled_sum(0.5, 2)), constants.get());
  // The first number is the constant one, the second is not.
  EXPECT_EQ(followed(known, scaled_sum(0.5, 7)), dynamic.get());
  EXPECT_EQ(followed(known, scaled_sum(0.5, 2, "aten::tanh")), other_end.get());
  EXPECT_EQ(followed(known, scaled_sum(0.5, 7, "aten::tanh")), nullptr);
}

TEST(DynamicScalars, WordsAreZeroOnTheTraceAndFoundByOperation) {
  const Tape tape = scaled_sum(0.5, 2);
  const auto trace = trace_of(tape, {1});

  EXPECT_TRUE(trace->dynamic(0).empty());
  ASSERT_EQ(trace->dynamic(1).size(), 1u);
  EXPECT_TRUE(trace->dynamic(2).empty());
  EXPECT_EQ(trace->tape().all_words()[trace->dynamic(1)[0].word], 0u);
  EXPECT_EQ(numbers_of(tape)[1], bits_of(2));
}

}  // namespace
}  // namespace torch_lazy
