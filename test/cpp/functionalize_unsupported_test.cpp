// What has no functional form is refused by a message that says why, and where it was recorded.

#include "functional_window.h"
#include "ir/node_operator.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using tests::functional;
using tests::Handle;
using tests::kNone;
using tests::number;
using tests::refusal;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

TEST(FunctionalizeUnsupported, WhatDrawsRandomNumbers) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}));
  window.call("aten::normal_", "", {x, 0.0, 1.0, kNone});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::normal_' has no functional form: it draws random numbers");
}

TEST(FunctionalizeUnsupported, WhatHasNoFunctionalTwin) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 2}));
  window.call("aten::fill_diagonal_", "", {x, 1.0, false});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::fill_diagonal_' has no functional form: no operator computes the same "
            "without changing its arguments");
}

TEST(FunctionalizeUnsupported, ResizedStorages) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2})), out = window.input(at::empty({0}));
  window.call("aten::neg", "out", {x, out});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::neg.out' has no functional form: it resizes %in1_alias_0");
}

TEST(FunctionalizeUnsupported, StoragesThatResizeMakesLarger) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}));
  window.call("aten::resize_", "", {x, std::vector<int64_t>{3}, kNone});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::resize_' has no functional form: it resizes %in0_alias_0");
}

TEST(FunctionalizeUnsupported, WritesToWhatIsAlsoSeenConjugated) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}, at::kComplexFloat));
  window.call("aten::_conj", "", {x});
  window.call("aten::exp_", "", {x});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::exp_' has no functional form: it writes memory that is also seen as "
            "another dtype or with other bits");
}

TEST(FunctionalizeUnsupported, WritesThroughAViewOfAnotherDtype) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}));
  const Handle y = window.call("aten::view", "dtype", {x, c10::IValue(int64_t(at::kInt))})[0];
  window.call("aten::neg_", "", {y});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::neg_' has no functional form: it writes memory that is also seen as "
            "another dtype or with other bits");
}

TEST(FunctionalizeUnsupported, WhatLiesBesideTheElementsOfAViewOfAnotherDtype) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}, at::kComplexFloat));
  const Handle pairs = window.call("aten::view_as_real", "", {x})[0];
  const Handle real = window.call("aten::select", "int", {pairs, 1, 0})[0];
  window.call("aten::as_strided", "",
              {real, std::vector<int64_t>{2}, std::vector<int64_t>{2}, int64_t{1}});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::as_strided' has no functional form: it looks for elements beside "
            "those of a view of another dtype, or with other bits");
}

TEST(FunctionalizeUnsupported, WritesWhereElementsShareMemory) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({4}));
  const Handle windows = window.call("aten::unfold", "", {x, 0, 2, 1})[0];
  window.call("aten::copy_", "", {windows, number(1), false});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::copy_' has no functional form: elements that it writes share memory");
}

TEST(FunctionalizeUnsupported, ListsWhoseElementsDependOnEachOther) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2})), y = window.input(at::randn({2}));
  window.call("aten::_foreach_add_", "List", {Handles{x, y}, Handles{y, x}, 1});

  EXPECT_EQ(refusal(window, {}),
            "operator 'aten::_foreach_add_.List' has no functional form: it writes memory that "
            "another argument shares");
}

TEST(FunctionalizeUnsupported, NamesTheLine) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}));
  window.call("aten::normal_", "", {x, 0.0, 1.0, kNone});
  const WindowGraph recorded = cpu_graph(window.tape, {});
  const auto text = std::make_shared<torch::jit::Source>(std::string(9, ' '), "train.py", 12);
  recorded.graph->return_node()->prev()->setSourceRange({text, 8, 9});
  std::string message;

  try {
    functionalize(*recorded.graph, {{.storage_bytes = 8}});
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  }

  EXPECT_EQ(message,
            "operator 'aten::normal_' (train.py:12:8) has no functional form: it draws random "
            "numbers");
}

}  // namespace
}  // namespace torch_lazy
