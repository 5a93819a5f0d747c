// The tape gives back what was written on it, and equal recordings are equal tapes.

#include "tape/tape.h"

#include <gtest/gtest.h>

#include <limits>

#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::number;
using tests::TapeBuilder;

std::vector<Operand> operands(const Tape& tape, size_t index) {
  return decode_operands(tape.words(index), nullptr);
}

TEST(Tape, DescribesAnInputOnceAndNamesItBySlotAfterwards) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({4, 6});
  const Handle x = window.input(base.narrow(1, 2, 3));
  window.call("aten::relu", "", {x});
  window.call("aten::relu", "", {x});

  std::vector<InputMetadata> inputs;
  decode_operands(window.tape.words(0), &inputs);
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].sizes, Dims({4, 3}));
  EXPECT_EQ(inputs[0].strides, Dims({6, 1}));
  EXPECT_EQ(inputs[0].offset.kind, OffsetKind::kFirst);
  EXPECT_EQ(inputs[0].dtype, at::kFloat);
  EXPECT_TRUE(inputs[0].first_of_storage);
  EXPECT_FALSE(inputs[0].cpu);

  const std::vector<Operand> again = decode_operands(window.tape.words(1), &inputs);
  EXPECT_EQ(inputs.size(), 1u);
  EXPECT_EQ(again[0].kind, Operand::Kind::kValue);
  EXPECT_EQ(again[0].value, inputs[0].value);
}

TEST(Tape, TellsASecondViewOfAnInputsStorageFromTheFirst) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({4});
  const Handle x = window.input(base), y = window.input(base.narrow(0, 1, 3));
  window.call("aten::add", "Tensor", {x, number(1), 1});
  window.call("aten::add", "Tensor", {y, number(1), 1});

  std::vector<InputMetadata> inputs;
  decode_operands(window.tape.words(0), &inputs);
  decode_operands(window.tape.words(1), &inputs);
  EXPECT_EQ(inputs[1].storage, inputs[0].storage);
  EXPECT_FALSE(inputs[1].first_of_storage);
}

TEST(Tape, DescribesPartsThatAreOnlyReadAlikeWhereverTheyLie) {
  const at::Tensor base = at::zeros({20});
  const auto recorded = [&](int64_t first, int64_t second) {
    TapeBuilder window;
    const Handle x = window.input(base.narrow(0, first, 3)),
                 y = window.input(base.narrow(0, second, 3));
    window.call("aten::add", "Tensor", {x, y, 1});
    return window.tape.hash();
  };

  EXPECT_TRUE(recorded(0, 5) == recorded(7, 2));
  EXPECT_FALSE(recorded(0, 5) == recorded(4, 4));
}

TEST(Tape, TellsHowPartsLieToEachOtherOnceOneIsWritten) {
  const at::Tensor base = at::zeros({20});
  const auto recorded = [&](int64_t first, int64_t second) {
    TapeBuilder window;
    const Handle x = window.input(base.narrow(0, first, 3)),
                 y = window.input(base.narrow(0, second, 3));
    window.call("aten::add", "Tensor", {x, y, 1});
    window.call("aten::relu_", "", {y});
    return window.tape;
  };

  EXPECT_TRUE(recorded(0, 5).hash() == recorded(3, 8).hash());
  EXPECT_FALSE(recorded(0, 5).hash() == recorded(0, 6).hash());
  std::vector<StorageOffsets> offsets;
  decode_operands(recorded(3, 8).words(1), nullptr, &offsets);
  ASSERT_EQ(offsets.size(), 1u);
  EXPECT_EQ(offsets[0].kind, OffsetKind::kRelative);
  EXPECT_EQ(offsets[0].others, std::vector<int64_t>{5 * 4});
}

TEST(Tape, KeepsTheOffsetsThatAsStridedLooksAt) {
  const at::Tensor base = at::zeros({20});
  TapeBuilder window;
  const Handle x = window.input(base.narrow(0, 4, 3)), y = window.input(base.narrow(0, 9, 3));
  window.call("aten::add", "Tensor", {x, y, 1});
  window.call("aten::as_strided", "", {y, std::vector<int64_t>{2}, std::vector<int64_t>{1}, 5});

  std::vector<StorageOffsets> offsets;
  decode_operands(window.tape.words(1), nullptr, &offsets);

  ASSERT_EQ(offsets.size(), 1u);
  EXPECT_EQ(offsets[0].kind, OffsetKind::kAbsolute);
  EXPECT_EQ(offsets[0].first, 4 * 4);
  EXPECT_EQ(offsets[0].others, std::vector<int64_t>{9 * 4});
  EXPECT_EQ(offsets[0].storage_bytes, 20 * 4);
}

TEST(Tape, CountsTheOffsetOfAViewFromItsSource) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({20, 2});
  const Handle x = window.input(base.narrow(0, 4, 8));
  window.call("aten::slice", "Tensor", {x, 0, 3, 5, 1});

  const OutputMetadata view = decode_outputs(window.tape.outputs(0)).at(0);

  EXPECT_TRUE(view.is_view());
  EXPECT_EQ(view.offset, 3 * 2 * 4);
  EXPECT_EQ(view.storage_bytes, 0);
}

TEST(Tape, KeepsConstantsOfEveryKindBitForBit) {
  const OperatorInfo& info = operator_info("aten::relu", "");
  const std::string text = "longer than one word";
  Tape tape;
  tape.begin(&info, kNoLocation);
  tape.word(make_word(Tag::kInt));
  tape.word(uint64_t(std::numeric_limits<int64_t>::min()));
  tape.word(make_word(Tag::kDouble));
  tape.word(0x8000000000000000);  // -0.0
  tape.word(make_word(Tag::kBool, 1));
  tape.string(text);
  tape.word(make_word(Tag::kDevice, uint32_t(c10::DeviceType::Lazy) << 8 | 1));
  tape.word(make_word(Tag::kIntList, 2));
  tape.word(7);
  tape.word(uint64_t(-8));
  tape.word(make_word(Tag::kList, 2));
  tape.word(make_word(Tag::kBool, 0));
  tape.word(make_word(Tag::kInt));
  tape.word(5);
  tape.word(make_word(Tag::kNone));
  tape.end();

  const auto read = operands(tape, 0);
  ASSERT_EQ(read.size(), 8u);
  EXPECT_EQ(read[0].constant.toInt(), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(std::signbit(read[1].constant.toDouble()));
  EXPECT_TRUE(read[2].constant.toBool());
  EXPECT_EQ(read[3].constant.toStringRef(), text);
  EXPECT_EQ(read[4].constant.toDevice(), c10::Device(c10::DeviceType::Lazy, 0));
  EXPECT_EQ(read[5].constant.toIntVector(), (std::vector<int64_t>{7, -8}));
  EXPECT_TRUE(read[6].constant.toListRef()[0].isBool());
  EXPECT_EQ(read[6].constant.toListRef()[1].toInt(), 5);
  EXPECT_TRUE(read[7].constant.isNone());
}

TEST(Tape, KeepsAWrappedNumberAsOneWithItsDtype) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  window.call("aten::add", "Tensor", {x, number(2.5), 1});

  const at::Tensor read = operands(window.tape, 0)[1].constant.toTensor();
  EXPECT_EQ(read.scalar_type(), at::kDouble);
  EXPECT_EQ(read.item<double>(), 2.5);
  EXPECT_TRUE(read.unsafeGetTensorImpl()->is_wrapped_number());
}

TEST(Tape, KeepsWhatAnOperationReturned) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 3}));
  window.call("aten::t", "", {x});
  window.call("aten::add_", "Tensor", {x, number(1), 1});
  window.call("aten::t_", "", {x});

  const OutputMetadata view = decode_outputs(window.tape.outputs(0)).at(0);
  EXPECT_EQ(view.kind, OutputMetadata::Kind::kAliasArgument);
  EXPECT_EQ(view.sizes, Dims({3, 2}));
  EXPECT_EQ(view.strides, Dims({1, 3}));
  EXPECT_EQ(view.storage, window.storage(x));
  const OutputMetadata written = decode_outputs(window.tape.outputs(1)).at(0);
  EXPECT_EQ(written.kind, OutputMetadata::Kind::kArgument);
  const OutputMetadata rebound = decode_outputs(window.tape.outputs(2)).at(0);
  EXPECT_EQ(rebound.kind, OutputMetadata::Kind::kArgumentRebound);
  EXPECT_EQ(rebound.sizes, Dims({3, 2}));
  EXPECT_NE(rebound.value, view.value);
}

TEST(Tape, AnAbandonedOperationLeavesNoTrace) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  window.call("aten::relu", "", {x});
  const Tape before = window.tape.prefix(1);
  window.tape.begin(&operator_info("aten::neg", ""), kNoLocation);
  window.tape.word(make_word(Tag::kNone));
  window.tape.abandon();

  EXPECT_EQ(window.tape.size(), 1u);
  EXPECT_TRUE(window.tape.same_words(before));
}

TapeBuilder scaled(const at::Tensor& input, double factor) {
  TapeBuilder window;
  const Handle x = window.input(input);
  window.call("aten::mul", "Tensor", {x, number(factor)});
  return window;
}

TEST(Tape, IsEqualForTheSameProgramOnOtherData) {
  const TapeBuilder a = scaled(at::zeros({2, 3}), 2), b = scaled(at::ones({2, 3}), 2);

  EXPECT_TRUE(a.tape.same_words(b.tape));
  EXPECT_EQ(a.tape.hash(), b.tape.hash());
}

TEST(Tape, DiffersByNumberShapeStrideAndOperator) {
  const TapeBuilder reference = scaled(at::zeros({2, 3}), 2);
  TapeBuilder divided;
  divided.call("aten::div", "Tensor", {divided.input(at::zeros({2, 3})), number(2.0)});
  const std::vector<Tape> others = {scaled(at::zeros({2, 3}), 3).tape,
                                    scaled(at::zeros({3, 2}), 2).tape,
                                    scaled(at::zeros({3, 2}).t(), 2).tape,
                                    scaled(at::zeros({2, 3}, at::kDouble), 2).tape, divided.tape};

  for (const Tape& other : others) {
    EXPECT_FALSE(reference.tape.same_words(other));
    EXPECT_FALSE(reference.tape.hash() == other.hash());
  }
}

TEST(Tape, AppendingItsPartsMakesTheSameTape) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const Handle y = window.call("aten::relu", "", {x})[0];
  window.call("aten::add", "Tensor", {x, y, 1});

  Tape joined = window.tape.prefix(1);
  joined.append(window.tape, 1, 2);

  EXPECT_TRUE(joined.same_words(window.tape));
  EXPECT_EQ(joined.words(1), window.tape.words(1));
  EXPECT_EQ(joined.outputs(1), window.tape.outputs(1));
}

TEST(Tape, HasOneHashOfOperatorsForALoopWhateverItsNumberOfRounds) {
  const auto loop = [](int rounds) {
    TapeBuilder window;
    const Handle x = window.input(at::zeros({4 + rounds}));
    for (int i = 0; i < rounds; ++i) {
      window.call("aten::relu", "", {x});
      window.call("aten::exp", "", {x});
    }
    return window.tape.hash_of_operators();
  };
  TapeBuilder other;
  const Handle x = other.input(at::zeros({4}));
  for (const char* const name : {"aten::relu", "aten::relu", "aten::exp", "aten::exp"})
    other.call(name, "", {x});

  EXPECT_EQ(loop(2), loop(7));
  EXPECT_NE(loop(2), other.tape.hash_of_operators());
}

}  // namespace
}  // namespace torch_lazy
