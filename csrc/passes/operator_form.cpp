#include "passes/operator_form.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "ir/node_operator.h"
#include "ir/print.h"
#include "ops/effects.h"

namespace torch_lazy {
namespace {

using Kind = OperatorForm::Kind;
using torch::jit::Node;
using torch::jit::Value;

constexpr std::pair<std::string_view, Kind> kCopiesAndFills[] = {
    {"aten::copy_", Kind::kCopy},        {"aten::_foreach_copy_", Kind::kCopy},
    {"aten::fill_.Tensor", Kind::kCopy}, {"aten::fill_.Scalar", Kind::kFill},
    {"aten::zero_", Kind::kFill},        {"aten::_foreach_zero_", Kind::kFill},
};

// Operators that keep statistics of their batches, under the names of what computes the same. Where
// nothing is kept another operator does.
struct Statistics {
  std::string_view name, kept, given, none;
};
constexpr Statistics kStatistics[] = {
    {"aten::native_batch_norm", "aten::_native_batch_norm_legit_functional",
     "aten::_native_batch_norm_legit_no_training", "aten::_native_batch_norm_legit.no_stats"},
    {"aten::_native_batch_norm_legit",
     "aten::_native_batch_norm_legit_functional",
     "aten::_native_batch_norm_legit_no_training",
     {}},
    {"aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional", {}, {}},
};

std::string full_name(const c10::OperatorHandle& handle) {
  const c10::OperatorName& name = handle.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

c10::OperatorHandle operator_named(std::string_view name) {
  const size_t dot = name.find('.');
  const std::string overload(dot == std::string_view::npos ? "" : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchemaOrThrow(std::string(name.substr(0, dot)).c_str(),
                                                        overload.c_str());
}

// The argument of the node's operator that has this name; null where it has none.
const Value* argument_named(const Node& node, const c10::FunctionSchema& schema,
                            const std::string& name) {
  const auto index = schema.argumentIndexWithName(name);
  return index ? node.input(size_t(*index)) : nullptr;
}

bool is_given(const Value* tensor) {
  return tensor && tensor->node()->kind() != c10::prim::AutogradZero &&
         tensor->type()->kind() == c10::TypeKind::TensorType;
}

const Statistics* statistics_of(const std::string& name) {
  for (const Statistics& entry : kStatistics)
    if (entry.name == name) return &entry;
  return nullptr;
}

// The name of the operator that computes what this node does with the statistics it is given.
std::string_view statistics_variant(const Statistics& entry, const Node& node,
                                    const c10::FunctionSchema& schema) {
  const bool mean = is_given(argument_named(node, schema, "running_mean"));
  const bool var = is_given(argument_named(node, schema, "running_var"));
  const Value* training = argument_named(node, schema, "training");
  std::optional<c10::IValue> trains(true);
  if (training) trains = torch::jit::toIValue(training);
  if (mean != var || !trains || !trains->isBool()) return {};
  if (!mean) return trains->toBool() ? entry.none : std::string_view();
  return trains->toBool() ? entry.kept : entry.given;
}

// How operators are told what to make, where they are given no tensor to make it in.
bool is_factory_option(const std::string& argument) {
  constexpr std::string_view kOptions[] = {"dtype", "layout", "device", "pin_memory"};
  return std::find(std::begin(kOptions), std::end(kOptions), argument) != std::end(kOptions);
}

// Maps the arguments of the functional operator to those of the other by name. `makes`: it may take
// options that the other does not.
bool map_arguments(OperatorForm& form, bool same_types, bool makes = false) {
  form.arguments.clear();
  form.makes_like_written = false;
  const c10::FunctionSchema& schema = form.handle.schema();
  for (const c10::Argument& argument : form.functional->schema().arguments()) {
    const auto index = schema.argumentIndexWithName(argument.name());
    if (!index && makes && is_factory_option(argument.name())) {
      form.arguments.emplace_back();
      form.makes_like_written = true;
      continue;
    }
    if (!index) return false;
    if (same_types && *schema.arguments()[size_t(*index)].type() != *argument.type()) return false;
    form.arguments.push_back(size_t(*index));
  }
  return true;
}

size_t fresh_returns(const Effects& effects) {
  return size_t(
      std::count_if(effects.returns.begin(), effects.returns.end(),
                    [](const ReturnEffect& effect) { return effect.kind == ReturnKind::Fresh; }));
}

// Whether `candidate` takes all arguments but the out= ones, and no others than options of what it
// makes, changes none and returns what `form` needs.
bool try_functional(OperatorForm& form, const c10::OperatorHandle& candidate) {
  const Effects& effects = effects_of(form.handle);
  const Effects& other = effects_of(candidate);
  form.functional = candidate;
  const size_t outs = size_t(std::count_if(effects.arguments.begin(), effects.arguments.end(),
                                           [](const ArgumentEffect& a) { return a.out; }));
  return other.known && !other.writes_any() &&
         fresh_returns(other) == candidate.schema().returns().size() &&
         fresh_returns(other) == fresh_returns(effects) + form.written.size() &&
         map_arguments(form, /*same_types=*/true, /*makes=*/outs == 1) &&
         size_t(std::count_if(form.arguments.begin(), form.arguments.end(),
                              [](const std::optional<size_t>& from) {
                                return from.has_value();
                              })) == effects.arguments.size() - outs;
}

// The overloads of one name, the one that is like the given first.
std::vector<c10::OperatorHandle> overloads(const std::string& name, const std::string& like) {
  std::vector<c10::OperatorHandle> found;
  auto& dispatcher = c10::Dispatcher::singleton();
  if (const auto same = dispatcher.findSchema({name, like})) found.push_back(*same);
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)))
    if (const auto other = dispatcher.findSchema({name, op->schema().overload_name()}))
      found.push_back(*other);
  return found;
}

bool find_functional(OperatorForm& form) {
  const c10::OperatorName& name = form.handle.operator_name();
  const Effects& effects = effects_of(form.handle);
  const bool out = std::any_of(effects.arguments.begin(), effects.arguments.end(),
                               [](const ArgumentEffect& argument) { return argument.out; });
  std::string base = name.name;
  if (const size_t in_place = base.find("::__i"); in_place != std::string::npos) {
    base.erase(in_place + 4, 1);  // __ilshift__: __lshift__
  } else if (!out) {
    if (!base.ends_with('_')) return false;
    base.pop_back();
  }
  for (const c10::OperatorHandle& candidate : overloads(base, name.overload_name))
    if (try_functional(form, candidate)) return true;
  return false;
}

// The form as far as the operator alone decides it; empty where there is none.
std::optional<OperatorForm> judge(const c10::OperatorHandle& handle) {
  OperatorForm form{.handle = handle};
  const Effects& effects = effects_of(handle);
  const std::string name = full_name(handle);
  for (const auto& [known, kind] : kCopiesAndFills) {
    if (known != name) continue;
    form.kind = kind;
    form.written = {0};
    return form;
  }
  size_t fresh = 0, unknown = 0;
  for (const ReturnEffect& effect : effects.returns) {
    fresh += effect.kind == ReturnKind::Fresh || effect.kind == ReturnKind::NotTensor;
    unknown += effect.kind == ReturnKind::MayAlias;
  }
  for (size_t i = 0; i < effects.arguments.size(); ++i)
    if (effects.arguments[i].writes) form.written.push_back(i);

  if (handle.hasTag(at::Tag::inplace_view)) {
    form.kind = Kind::kView;
    form.written.clear();
  } else if (!form.written.empty()) {
    form.kind = Kind::kMutation;
    if (!find_functional(form)) return std::nullopt;
  } else if (unknown > 0) {
    form.kind = Kind::kUnknown;
  } else if (fresh == effects.returns.size()) {
    form.kind = Kind::kPure;
  } else {
    form.kind = Kind::kView;
    if (fresh > 0) return std::nullopt;
  }
  return form;
}

OperatorForm form_with_statistics(const Statistics& entry, const Node& node,
                                  const c10::OperatorHandle& handle) {
  const std::string_view variant = statistics_variant(entry, node, handle.schema());
  if (variant.empty()) unsupported(node, "nothing computes it with these statistics");
  OperatorForm form{.kind = Kind::kMutation, .handle = handle};
  form.functional = operator_named(variant);
  if (variant == entry.kept)
    for (const char* name : {"running_mean", "running_var"})
      form.written.push_back(size_t(*handle.schema().argumentIndexWithName(name)));
  TORCH_INTERNAL_ASSERT(map_arguments(form, /*same_types=*/false), "arguments of ", entry.name);
  return form;
}

}  // namespace

const OperatorForm& OperatorForms::of(const Node& node) {
  const auto handle = find_operator(&node);
  if (!handle) unsupported(node, "the dispatcher does not know it");
  std::string key = full_name(*handle);
  const Statistics* statistics = statistics_of(key);
  if (statistics) key += statistics_variant(*statistics, node, handle->schema());
  if (const auto found = forms_.find(key); found != forms_.end()) return found->second;

  const Effects& effects = effects_of(*handle);
  if (!effects.known) unsupported(node, "what it does is not known");
  if (effects.random) unsupported(node, "it draws random numbers");
  if (effects.data_dependent_output && !effects.data_dependent_only_with_masks)
    unsupported(node, "its result's shape depends on data");
  if (statistics)
    return forms_.emplace(std::move(key), form_with_statistics(*statistics, node, *handle))
        .first->second;
  std::optional<OperatorForm> form = judge(*handle);
  if (!form) unsupported(node, "no operator computes the same without changing its arguments");
  return forms_.emplace(std::move(key), *std::move(form)).first->second;
}

void unsupported(const Node& node, const std::string& reason) {
  const std::string line = recorded_at(node);
  TORCH_CHECK(false, "operator '", operator_name(&node), "'", line.empty() ? "" : " (" + line + ")",
              " has no functional form: ", reason);
}

}  // namespace torch_lazy
