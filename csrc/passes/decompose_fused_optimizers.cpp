// Steps of optimizers as one operator on lists of parameters: the formulas of ATen's kernels for
// the CPU, for each parameter.
//
// What depends on the number of steps is computed in double, as there. These kernels go over memory
// and not over indices, so all tensors of a parameter must lie alike; and with bfloat16 or half
// they round vectors and what is left of them differently. Such steps, and those with a scale of
// gradients or a flag for infinite ones, stay library calls.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ir/node_operator.h"
#include "passes/decompose_rules.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// The arguments of a step by the names of its schema.
class OptimizerStep {
 public:
  OptimizerStep(GraphBuilder& builder, Node* node)
      : builder_(builder), node_(node), schema_(operator_of(node).schema()) {}

  bool boolean(const char* name) const { return constant_value(argument(name)).value().toBool(); }
  double real(const char* name) const { return constant_value(argument(name)).value().toDouble(); }
  bool given(const char* name) const {
    return argument(name)->type()->kind() == c10::TypeKind::TensorType;
  }
  Term of_parameter(const char* list, size_t index) const {
    return {&builder_, argument(list)->node()->input(index)};
  }
  size_t parameters() const { return argument("self")->node()->inputs().size(); }

  // Without dimensions, in double.
  Term number(double value) const { return {&builder_, builder_.number(value, at::kDouble)}; }
  Term learning_rate() const {
    return given("lr") ? Term{&builder_, argument("lr")}.to(at::kDouble) : number(real("lr"));
  }
  Term steps(size_t index) const { return of_parameter("state_steps", index).to(at::kDouble); }

  // Whether `lists` have one dtype, float or double, and one dense layout for each parameter.
  bool lie_alike(c10::ArrayRef<const char*> lists) const {
    for (size_t i = 0; i < parameters(); ++i) {
      const TensorInfo parameter = of_parameter("self", i).info();
      if (parameter.dtype != at::kFloat && parameter.dtype != at::kDouble) return false;
      if (!is_dense(parameter.sizes, parameter.strides)) return false;
      for (const char* const list : lists) {
        const TensorInfo other = of_parameter(list, i).info();
        if (other.dtype != parameter.dtype || !other.same_layout(parameter)) return false;
      }
    }
    return true;
  }

 private:
  Value* argument(const char* name) const {
    return node_->input(size_t(schema_.argumentIndexWithName(name).value()));
  }

  GraphBuilder& builder_;
  Node* node_;
  const c10::FunctionSchema& schema_;
};

// What the operator returns for one parameter, in the order of its results: where it has fewer
// lists of states than the formula, the last are missing there too.
using Results = std::vector<Term>;

Term power(Term base, Term exponent) {
  return binary("pow", "Tensor_Tensor", base, exponent);
}

Term square_root_of_remainder(const OptimizerStep& step, const char* beta, size_t index) {
  return sqrt(1 - power(step.number(step.real(beta)), step.steps(index)));
}

// a + weight * (b - a), from the end that is nearer.
Term lerp(Term a, Term b, double weight) {
  return std::abs(weight) < 0.5 ? multiply_add(a, a.number(weight), b - a)
                                : multiply_add(b, a.number(weight - 1), b - a);
}

// Of what is to be minimized, with the decay of the parameter that is not decoupled from it.
Term gradient_of(const OptimizerStep& step, size_t index, double decay) {
  const Term stored = step.of_parameter("grads", index);
  const Term gradient = step.boolean("maximize") ? -stored : stored;
  return decay != 0 ? gradient + step.of_parameter("self", index) * decay : gradient;
}

Results adam(const OptimizerStep& step, size_t index, bool decoupled_decay) {
  Term parameter = step.of_parameter("self", index);
  const Term stored = step.of_parameter("grads", index);
  const c10::ScalarType dtype = parameter.dtype();
  const double decay = step.real("weight_decay");
  const Term gradient = gradient_of(step, index, decoupled_decay ? 0 : decay);
  if (decay != 0 && decoupled_decay)
    parameter = parameter * (1 - step.learning_rate() * decay).to(dtype);

  const Term mean = lerp(step.of_parameter("exp_avgs", index), gradient, 1 - step.real("beta1"));
  const double beta2 = step.real("beta2");
  const Term square =
      step.of_parameter("exp_avg_sqs", index) * beta2 + (1 - beta2) * gradient * gradient;
  Results results{parameter, stored, mean, square};
  if (step.boolean("amsgrad"))
    results.push_back(maximum(step.of_parameter("max_exp_avg_sqs", index), square));

  const Term correction = square_root_of_remainder(step, "beta2", index).to(dtype);
  const Term divisor = sqrt(results.back()) / correction + step.real("eps");
  const Term size =
      step.learning_rate() / (1 - power(step.number(step.real("beta1")), step.steps(index)));
  results[0] = parameter - size.to(dtype) * mean / divisor;
  return results;
}

Results sgd(const OptimizerStep& step, size_t index) {
  const Term parameter = step.of_parameter("self", index);
  const Term stored = step.of_parameter("grads", index);
  Term gradient = gradient_of(step, index, step.real("weight_decay"));
  Results results{parameter, stored};
  if (const double momentum = step.real("momentum"); momentum != 0) {
    const Term buffer = step.boolean("is_first_step")
                            ? gradient
                            : step.of_parameter("momentum_buffer_list", index) * momentum +
                                  gradient * (1 - step.real("dampening"));
    gradient = step.boolean("nesterov") ? gradient + buffer * momentum : buffer;
    results.push_back(buffer);
  }
  results[0] = parameter - gradient * step.learning_rate().to(parameter.dtype());
  return results;
}

Results adagrad(const OptimizerStep& step, size_t index) {
  const Term parameter = step.of_parameter("self", index);
  const Term stored = step.of_parameter("grads", index);
  const Term gradient = gradient_of(step, index, step.real("weight_decay"));
  const Term sum = step.of_parameter("state_sums", index) + gradient * gradient;
  const Term rate = step.learning_rate() / (1 + (step.steps(index) - 1) * step.real("lr_decay"));
  const Term moved =
      parameter - rate.to(parameter.dtype()) * gradient / (sqrt(sum) + step.real("eps"));
  return {moved, stored, sum, step.of_parameter("state_steps", index)};
}

struct Optimizer {
  std::string_view name;  // with or without an overload for a rate in a tensor
  std::vector<const char*> states;
  Results (*results)(const OptimizerStep&, size_t);
};

const Optimizer* find_optimizer(std::string_view name) {
  static const auto& optimizers = *new std::vector<Optimizer>{
      {"aten::_fused_adam",
       {"grads", "exp_avgs", "exp_avg_sqs"},
       [](const OptimizerStep& step, size_t index) { return adam(step, index, false); }},
      {"aten::_fused_adamw",
       {"grads", "exp_avgs", "exp_avg_sqs"},
       [](const OptimizerStep& step, size_t index) { return adam(step, index, true); }},
      {"aten::_fused_sgd", {"grads"}, sgd},
      {"aten::_fused_adagrad", {"grads", "state_sums"}, adagrad},
  };
  const std::string_view base = name.substr(0, name.find('.'));
  for (const Optimizer& optimizer : optimizers)
    if (optimizer.name == base) return &optimizer;
  return nullptr;
}

// The lists of states that only some steps have.
std::vector<const char*> all_states(const Optimizer& optimizer, const OptimizerStep& step) {
  std::vector<const char*> states = optimizer.states;
  if (optimizer.name.starts_with("aten::_fused_adam") && step.boolean("amsgrad"))
    states.push_back("max_exp_avg_sqs");
  if (optimizer.name == "aten::_fused_sgd" && step.real("momentum") != 0)
    states.push_back("momentum_buffer_list");
  return states;
}

bool is_replaceable(const Node* node, const OptimizerStep& step, const Optimizer& optimizer) {
  if (step.given("grad_scale") || step.given("found_inf")) return false;
  if (!step.lie_alike(all_states(optimizer, step))) return false;
  for (const Value* const list : node->outputs())
    for (const auto& use : list->uses())
      if (use.user->kind() != c10::prim::ListUnpack) return false;
  return true;
}

void replace_results(GraphBuilder& builder, Node* node, const OptimizerStep& step,
                     const Optimizer& optimizer) {
  for (size_t i = 0; i < step.parameters(); ++i) {
    builder.append_for(node);
    const Results results = optimizer.results(step, i);
    for (size_t r = 0; r < node->outputs().size(); ++r)
      for (const auto& use : node->output(r)->uses()) {
        if (use.user->outputs().size() <= i) continue;  // a list that such a step leaves empty
        Value* const output = use.user->output(i);
        Value* const result = results.at(r).value;
        // What the step leaves as it was is a copy of it, as any result is memory of its own.
        const bool made =
            std::ranges::find(builder.inserted(), result->node()) != builder.inserted().end();
        output->replaceAllUsesWith(made ? result : builder.clone(result, info_of(output)));
      }
  }
}

}  // namespace

bool decompose_fused_optimizer(GraphBuilder& builder, Node* unpack) {
  Node* const node = unpack->input()->node();
  const Optimizer* const optimizer = find_optimizer(operator_name(node));
  if (!optimizer) return false;
  const OptimizerStep step(builder, node);
  // All of a call's lists stay unpacked or none: their elements tell its results apart.
  if (!is_replaceable(node, step, *optimizer)) return false;
  const auto unused = [](const Value* output) { return !output->hasUses(); };
  // With the first of the step's lists all are replaced.
  if (!std::ranges::all_of(unpack->outputs(), unused))
    replace_results(builder, node, step, *optimizer);
  unpack->destroy();
  if (std::ranges::all_of(node->outputs(), unused)) node->destroy();
  return true;
}

}  // namespace torch_lazy
