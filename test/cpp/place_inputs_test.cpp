#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tape_builder.h"

namespace torch_lazy::tests {
namespace {

std::vector<WindowInput> placed(const TapeBuilder& window) {
  return cpu_graph(window.tape, {}).inputs;
}

TEST(PlaceInputs, PartsThatAreOnlyReadAreStoragesOfTheirOwn) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({20});
  const Handle x = window.input(base.narrow(0, 6, 3)), y = window.input(base.narrow(0, 2, 5));
  window.call("aten::relu", "", {x});
  window.call("aten::relu", "", {y});

  const auto inputs = placed(window);

  EXPECT_NE(inputs[0].storage, inputs[1].storage);
  EXPECT_EQ(inputs[0].offset, 0);
  EXPECT_EQ(inputs[1].offset, 0);
  EXPECT_EQ(inputs[0].storage_bytes, 3 * 4);
  EXPECT_EQ(inputs[1].storage_bytes, 5 * 4);
}

TEST(PlaceInputs, PartsOfAWrittenStorageLieAsTheyDoToEachOther) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({20});
  const Handle x = window.input(base.narrow(0, 6, 3)), y = window.input(base.narrow(0, 4, 5));
  window.call("aten::relu", "", {x});
  window.call("aten::relu", "", {y});
  window.call("aten::relu_", "", {x});

  const auto inputs = placed(window);

  EXPECT_EQ(inputs[0].storage, inputs[1].storage);
  EXPECT_EQ(inputs[0].offset, 2);
  EXPECT_EQ(inputs[1].offset, 0);
  EXPECT_EQ(inputs[0].storage_bytes, 5 * 4);
}

TEST(PlaceInputs, APartThatIsFirstReadAfterTheWriteLiesToItToo) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({20});
  const Handle x = window.input(base.narrow(0, 6, 3)), y = window.input(base.narrow(0, 8, 5));
  window.call("aten::relu_", "", {x});
  window.call("aten::relu", "", {y});

  const auto inputs = placed(window);

  EXPECT_EQ(inputs[0].storage, inputs[1].storage);
  EXPECT_EQ(inputs[0].offset, 0);
  EXPECT_EQ(inputs[1].offset, 2);
  EXPECT_EQ(inputs[1].storage_bytes, 7 * 4);
}

TEST(PlaceInputs, WhatAsStridedLooksAtLiesWhereItDoes) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({20});
  const Handle x = window.input(base.narrow(0, 6, 3)), y = window.input(base.narrow(0, 8, 5)),
               z = window.input(base.narrow(0, 1, 2));
  window.call("aten::relu_", "", {x});
  window.call("aten::relu", "", {y});
  window.call("aten::as_strided", "", {y, std::vector<int64_t>{2}, std::vector<int64_t>{1}, 5});
  window.call("aten::relu", "", {z});

  const auto inputs = placed(window);

  EXPECT_EQ(inputs[0].offset, 6);
  EXPECT_EQ(inputs[1].offset, 8);
  EXPECT_EQ(inputs[2].offset, 1);
  for (const WindowInput& input : inputs) {
    EXPECT_EQ(input.storage, inputs[0].storage);
    EXPECT_EQ(input.storage_bytes, 20 * 4);
  }
}

TEST(PlaceInputs, AStorageIsAsLargeAsItWasBeforeItWasResized) {
  TapeBuilder window;
  at::Tensor base = at::zeros({4});
  const Handle x = window.input(base), y = window.input(base.narrow(0, 1, 2));
  window.call("aten::resize_", "", {x, std::vector<int64_t>{9}, c10::IValue()});
  window.call("aten::relu", "", {y});

  const auto inputs = placed(window);

  EXPECT_EQ(inputs[0].storage, inputs[1].storage);
  EXPECT_EQ(inputs[0].storage_bytes, 4 * 4);
  EXPECT_EQ(inputs[1].storage_bytes, 4 * 4);
}

TEST(PlaceInputs, TwoViewsAtOnePlaceAreOneStorage) {
  TapeBuilder window;
  const at::Tensor base = at::zeros({4, 4});
  const Handle x = window.input(base), y = window.input(base.t());
  window.call("aten::relu", "", {x});
  window.call("aten::relu", "", {y});

  const auto inputs = placed(window);

  EXPECT_EQ(inputs[0].storage, inputs[1].storage);
}

}  // namespace
}  // namespace torch_lazy::tests
