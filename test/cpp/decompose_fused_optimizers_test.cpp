// Steps of fused optimizers as formulas: values of ATen's kernels, and what stays a library call.

#include <gtest/gtest.h>

#include "functional_window.h"
#include "ir/node_operator.h"
#include "passes/decompose.h"
#include "passes/simplify.h"

namespace torch_lazy {
namespace {

using tests::FunctionalWindow;
using tests::Handle;
using tests::TapeBuilder;
using Argument = TapeBuilder::Argument;
using Handles = TapeBuilder::Handles;

const Handle kUndefined;

// Two parameters, of a few vectors and some elements, in another order of dimensions and not.
class OptimizerStep {
 public:
  explicit OptimizerStep(c10::ScalarType dtype) : dtype_(dtype) {}

  Handles list(bool positive = false) {
    Handles made;
    for (const at::Tensor& tensor :
         {at::randn({7, 21}, at::kDouble).t(), at::randn({5}, at::kDouble)})
      made.push_back(window.input((positive ? tensor.abs() + 0.1 : tensor).to(dtype_)));
    return made;
  }
  Handles steps() {
    return {window.input(at::full({}, 3., at::kFloat)), window.input(at::full({}, 8., at::kFloat))};
  }
  // A number, or a tensor of it under the overload's name.
  Argument rate(const std::string& overload, double number) {
    if (overload.empty()) return number;
    return window.input(at::full({}, number, at::kDouble));
  }

  // The graph before and after, on equal inputs; returns the operators that are left.
  std::vector<std::string> decompose_and_compare() {
    const FunctionalWindow graphs(window, {});
    const auto decomposed = simplify(decompose(graphs.functional->copy(), {}));
    verify_graph(*decomposed);
    verify_functional(*decomposed, graphs.inputs);
    const std::vector<at::Tensor> expected = window.inputs(), actual = window.inputs();
    tests::evaluate(*graphs.recorded, expected);
    tests::evaluate(*decomposed, actual);
    for (size_t i = 0; i < expected.size(); ++i) {
      const double tolerance = expected[i].scalar_type() == at::kDouble ? 1e-14 : 2e-6;
      EXPECT_TRUE(at::allclose(actual[i], expected[i], tolerance, tolerance)) << "input " << i;
    }
    std::vector<std::string> names;
    for (const auto* node : decomposed->nodes()) names.push_back(operator_name(node));
    return names;
  }

  TapeBuilder window;

 private:
  const c10::ScalarType dtype_;
};

bool has_library_call(const std::vector<std::string>& operators) {
  return std::ranges::any_of(
      operators, [](const std::string& name) { return name.starts_with("aten::_fused_"); });
}

struct Adam {
  std::string name, overload;
  double beta1 = 0.9, decay = 0;
  bool amsgrad = false, maximize = false;
};

void record(OptimizerStep& step, const Adam& adam, Handle grad_scale = kUndefined) {
  const Handles parameters = step.list(), gradients = step.list(), means = step.list();
  const Handles squares = step.list(true);
  const Handles most = adam.amsgrad ? step.list(true) : Handles{};
  const Handles steps = step.steps();
  const Argument scale = grad_scale.tensor.defined() ? Argument(grad_scale) : c10::IValue();
  step.window.call(
      adam.name.c_str(), adam.overload.c_str(),
      {parameters, gradients, means, squares, most, steps, step.rate(adam.overload, 0.01),
       adam.beta1, 0.99, adam.decay, 1e-8, adam.amsgrad, adam.maximize, scale, c10::IValue()});
}

TEST(DecomposeFusedOptimizers, AdamsFormulasAreItsKernels) {
  for (const auto dtype : {at::kFloat, at::kDouble})
    for (const std::string name : {"aten::_fused_adam_", "aten::_fused_adamw_"})
      for (const Adam& adam :
           {Adam{name, ""}, Adam{name, "tensor_lr"}, Adam{.name = name, .beta1 = 0.3, .decay = 0.1},
            Adam{.name = name, .overload = "tensor_lr", .decay = 0.1},
            Adam{.name = name, .amsgrad = true, .maximize = true}}) {
        SCOPED_TRACE(name + " " + c10::toString(dtype));
        OptimizerStep step(dtype);
        record(step, adam);

        EXPECT_FALSE(has_library_call(step.decompose_and_compare()));
      }
}

TEST(DecomposeFusedOptimizers, StochasticGradientDescentsFormulasAreItsKernels) {
  struct Case {
    std::string overload;
    double decay, momentum, dampening;
    bool nesterov, maximize, first;
  };
  for (const auto dtype : {at::kFloat, at::kDouble})
    for (const Case& each :
         {Case{"", 0, 0, 0, false, false, false}, Case{"tensor_lr", 0.1, 0, 0, false, true, true},
          Case{"", 0, 0.9, 0.2, false, false, false}, Case{"", 0.1, 0.9, 0, true, false, false},
          Case{"tensor_lr", 0.1, 0.9, 0.2, true, true, true}}) {
      OptimizerStep step(dtype);
      const Handles parameters = step.list(), gradients = step.list();
      const Handles buffers = each.momentum != 0 ? step.list() : Handles{};
      step.window.call("aten::_fused_sgd_", each.overload.c_str(),
                       {parameters, gradients, buffers, each.decay, each.momentum,
                        step.rate(each.overload, 0.01), each.dampening, each.nesterov,
                        each.maximize, each.first, c10::IValue(), c10::IValue()});

      EXPECT_FALSE(has_library_call(step.decompose_and_compare()));
    }
}

TEST(DecomposeFusedOptimizers, AdagradsFormulasAreItsKernels) {
  for (const auto dtype : {at::kFloat, at::kDouble})
    for (const std::string overload : {"", "tensor_lr"})
      for (const bool maximize : {false, true}) {
        OptimizerStep step(dtype);
        const Handles parameters = step.list(), gradients = step.list(), sums = step.list(true);
        const Handles steps = step.steps();
        step.window.call("aten::_fused_adagrad_", overload.c_str(),
                         {parameters, gradients, sums, steps, step.rate(overload, 0.01), 0.1,
                          maximize ? 0.2 : 0., 1e-10, maximize, c10::IValue(), c10::IValue()});

        EXPECT_FALSE(has_library_call(step.decompose_and_compare()));
      }
}

TEST(DecomposeFusedOptimizers, AStepWritesGradientsOnlyWhereItScalesThem) {
  OptimizerStep step(at::kFloat);
  record(step, {"aten::_fused_adam_", ""});

  const std::vector<std::string> operators = step.decompose_and_compare();

  // The parameters and two states of two parameters.
  EXPECT_EQ(std::ranges::count(operators, "aten::copy_"), 6);
}

TEST(DecomposeFusedOptimizers, AScaledStepStaysALibraryCall) {
  OptimizerStep step(at::kFloat);
  record(step, {"aten::_fused_adam_", ""}, step.window.input(at::full({}, 2., at::kFloat)));

  EXPECT_TRUE(has_library_call(step.decompose_and_compare()));
}

TEST(DecomposeFusedOptimizers, AStepInHalfPrecisionStaysALibraryCall) {
  OptimizerStep step(at::kBFloat16);
  record(step, {"aten::_fused_adam_", ""});

  EXPECT_TRUE(has_library_call(step.decompose_and_compare()));
}

TEST(DecomposeFusedOptimizers, AGradientThatLiesOtherwiseStaysALibraryCall) {
  OptimizerStep step(at::kFloat);
  const Handle parameter = step.window.input(at::randn({3, 5}));
  const Handle gradient = step.window.input(at::randn({5, 3}).t());
  step.window.call("aten::_fused_sgd_", "",
                   {Handles{parameter}, Handles{gradient}, Handles{}, 0., 0., 0.01, 0., false,
                    false, false, c10::IValue(), c10::IValue()});

  EXPECT_TRUE(has_library_call(step.decompose_and_compare()));
}

}  // namespace
}  // namespace torch_lazy
