// Every rule computes what ATen computes: sample calls of each operator are run as they are and
// decomposed.

#include <gtest/gtest.h>

#include "decompose_samples.h"
#include "graph_evaluator.h"
#include "ir/print.h"
#include "ir/verify_graph.h"
#include "ops/one_hot_operator.h"
#include "passes/decompose.h"
#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using at::ScalarType;
using at::Tensor;
using tests::Arguments;
using tests::Sample;
using tests::Samples;
using torch::jit::Graph;
using torch::jit::Value;

// Here no device registers it.
const bool one_hot_registered = (register_one_hot_operator(), true);

// ---- One call as a graph ----

struct Call {
  std::shared_ptr<Graph> graph;
  std::vector<Tensor> inputs;
  std::vector<int64_t> offsets;
  std::vector<Tensor> expected;
};

class CallBuilder {
 public:
  CallBuilder(const std::string& name, const Arguments& arguments)
      : op_(c10::Dispatcher::singleton().findSchemaOrThrow(
            (name_space_of(name) + name.substr(0, name.find('.'))).c_str(),
            name.find('.') == std::string::npos ? "" : name.substr(name.find('.') + 1).c_str())) {
    call_.graph = std::make_shared<Graph>();
    std::vector<Value*> values;
    for (const c10::IValue& argument : arguments) values.push_back(add(argument));
    const c10::FunctionSchema& schema = op_.schema();
    torch::jit::Stack stack(arguments.begin(), arguments.end());
    for (size_t i = 0; i < stack.size(); ++i)
      stack[i] = argument_constant(stack[i], schema.arguments()[i].type(), c10::kCPU);
    op_.callBoxed(stack);
    auto* node = call_.graph->create(c10::Symbol::fromQualString(schema.name()), values,
                                     schema.returns().size());
    call_.graph->insertNode(node);
    node->s_(kOverloadAttribute, schema.overload_name());
    for (size_t i = 0; i < stack.size(); ++i) {
      if (stack[i].isTensor()) {
        returns(node->output(i), stack[i].toTensor());
        continue;
      }
      const auto tensors = stack[i].toTensorVector();
      node->output(i)->setType(c10::ListType::ofTensors());
      auto* unpack = call_.graph->createListUnpack(node->output(i), tensors.size());
      call_.graph->insertNode(unpack);
      for (size_t j = 0; j < tensors.size(); ++j) returns(unpack->output(j), tensors[j]);
    }
  }

  Call take() { return std::move(call_); }

 private:
  static std::string name_space_of(const std::string& name) {
    const bool own = name.starts_with("philox") || name == "one_hot_of_classes";
    return own ? "torch_lazy::" : "aten::";
  }

  Value* add(const c10::IValue& argument) {
    if (argument.isTensor()) return add(argument.toTensor());
    if (argument.isTensorList()) {
      std::vector<Value*> items;
      for (const Tensor& item : argument.toTensorVector()) items.push_back(add(item));
      auto* list = call_.graph->createList(c10::TensorType::get(), items);
      call_.graph->insertNode(list);
      return list->output();
    }
    if (argument.isOptionalTensorList()) {
      std::vector<Value*> items;
      for (const std::optional<Tensor>& item : argument.toOptionalTensorVector())
        items.push_back(add(item.value_or(Tensor())));
      auto* list = call_.graph->createList(c10::OptionalType::ofTensor(), items);
      call_.graph->insertNode(list);
      return list->output();
    }
    if (argument.isList() && argument.toListRef().empty())
      return call_.graph->insertConstant(std::vector<int64_t>());
    return call_.graph->insertConstant(argument);
  }

  Value* add(const Tensor& tensor) {
    if (!tensor.defined()) return call_.graph->insertConstant(c10::IValue());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      return call_.graph->insertConstant(tensor);
    Value* value = call_.graph->addInput();
    value->setType(type_of(tensor));
    call_.inputs.push_back(tensor);
    call_.offsets.push_back(tensor.storage_offset());
    return value;
  }

  void returns(Value* value, const Tensor& tensor) {
    if (!tensor.defined()) return;
    value->setType(type_of(tensor));
    call_.graph->registerOutput(value);
    call_.expected.push_back(tensor);
  }

  static c10::TensorTypePtr type_of(const Tensor& tensor) {
    return TensorInfo{tensor.scalar_type(), tensor.device(), tensor.sizes().vec(),
                      tensor.strides().vec()}
        .type();
  }

  c10::OperatorHandle op_;
  Call call_;
};

// ---- All samples ----

const Samples& samples() {
  static const Samples all = [] {
    Samples made;
    tests::add_pointwise(made);
    tests::add_selection(made);
    tests::add_activations(made);
    tests::add_creation(made);
    tests::add_reductions(made);
    tests::add_softmax(made);
    tests::add_normalization(made);
    tests::add_losses(made);
    tests::add_pooling(made);
    tests::add_shapes(made);
    return made;
  }();
  return all;
}

// ---- Comparison ----

struct Tolerance {
  double relative, absolute;
};

Tolerance tolerance_of(ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return {1e-12, 1e-12};
    case at::kFloat:
      return {2e-6, 2e-6};
    case at::kHalf:
      return {2e-3, 1e-3};
    case at::kBFloat16:
      return {1.6e-2, 4e-3};
    default:
      return {0, 0};
  }
}

bool is_close(const Tensor& expected, const Tensor& actual) {
  Tolerance tolerance = tolerance_of(expected.scalar_type());
  // Sums lose what is small beside their terms.
  if (c10::isFloatingType(expected.scalar_type()) && expected.numel() > 0) {
    const Tensor finite = expected.abs().to(at::kDouble).nan_to_num(0, 0, 0);
    tolerance.absolute *= std::max(1.0, std::min(100.0, finite.max().item<double>()));
  }
  return expected.sizes() == actual.sizes() && expected.strides() == actual.strides() &&
         expected.scalar_type() == actual.scalar_type() &&
         at::allclose(actual, expected, tolerance.relative, tolerance.absolute, true);
}

std::optional<Call> call_of(const std::string& name, const Sample& sample, ScalarType dtype) {
  try {
    return CallBuilder(name, sample(dtype)).take();
  } catch (const std::exception&) {
    return std::nullopt;  // not for this dtype
  }
}

class DecompositionRules : public ::testing::TestWithParam<std::string> {};

TEST_P(DecompositionRules, ComputesWhatATenComputes) {
  const std::string name = GetParam();
  at::manual_seed(0);
  size_t calls = 0;
  for (const ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong,
                                 at::kInt, at::kByte, at::kBool})
    for (const Sample& sample : samples().at(name)) {
      // Losses of integers are undefined; their kernels divide by parameters cut to integers.
      if (!c10::isFloatingType(dtype) && name.find("_loss") != std::string::npos) continue;
      auto call = call_of(name, sample, dtype);
      if (!call) continue;
      ++calls;
      const std::string before = print_graph(*call->graph);
      for (const bool offsets_known : {true, false}) {
        auto graph = call->graph->copy();
        decompose(graph, offsets_known ? call->offsets : std::vector<int64_t>());
        verify_graph(*graph);
        const auto actual = tests::evaluate(*graph, call->inputs);
        ASSERT_EQ(actual.size(), call->expected.size());
        for (size_t i = 0; i < actual.size(); ++i) {
          if (is_close(call->expected[i], actual[i])) continue;
          std::ostringstream inputs;
          for (const Tensor& input : call->inputs) inputs << input << "\n";
          ADD_FAILURE() << dtype << " result " << i << "\n"
                        << before << print_graph(*graph) << inputs.str() << "expected "
                        << call->expected[i] << "\nactual " << actual[i];
          return;
        }
      }
    }
  EXPECT_GT(calls, 0u);
}

std::vector<std::string> sampled() {
  std::vector<std::string> names;
  for (const auto& [name, list] : samples())
    if (!list.empty()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllOperators, DecompositionRules, ::testing::ValuesIn(sampled()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

// But for memory with any values, of which there is nothing to compare.
TEST(Decompose, EveryRuleHasSamples) {
  for (const auto& [name, rule] : decomposition_rules())
    EXPECT_TRUE(samples().count(name) || name.starts_with("empty") || name.starts_with("new_empty"))
        << name;
}

}  // namespace
}  // namespace torch_lazy
