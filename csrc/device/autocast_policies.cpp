#include "device/autocast_policies.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace torch_lazy {
namespace {

using Policies = std::unordered_map<std::string, AutocastPolicy>;

// What the CPU casts to float32 is what it casts and is not listed here.
AutocastPolicy policy_on_cpu(const std::string& name) {
  static const std::unordered_set<std::string> low{"aten::conv1d",
                                                   "aten::conv1d.padding",
                                                   "aten::conv2d",
                                                   "aten::conv2d.padding",
                                                   "aten::conv3d",
                                                   "aten::conv3d.padding",
                                                   "aten::conv_transpose1d",
                                                   "aten::conv_transpose2d.input",
                                                   "aten::conv_tbc",
                                                   "aten::conv_transpose3d.input",
                                                   "aten::mm",
                                                   "aten::_convolution.deprecated",
                                                   "aten::bmm",
                                                   "aten::linalg_vecdot",
                                                   "aten::addmm",
                                                   "aten::_addmm_activation",
                                                   "aten::addbmm",
                                                   "aten::baddbmm",
                                                   "aten::linear",
                                                   "aten::matmul",
                                                   "aten::prelu",
                                                   "aten::mkldnn_rnn_layer",
                                                   "aten::scaled_dot_product_attention",
                                                   "aten::_native_multi_head_attention"};
  if (low.count(name) > 0) return AutocastPolicy::kLow;
  const bool promotes = name == "aten::cat" || name == "aten::stack" || name == "aten::index_copy";
  return promotes ? AutocastPolicy::kPromote : AutocastPolicy::kFloat;
}

// `listed` is an operator as the header's lists write it: "name" or "name, overload".
std::string full_name(const std::string& listed) {
  const size_t comma = listed.find(", ");
  if (comma == std::string::npos) return "aten::" + listed;
  return "aten::" + listed.substr(0, comma) + "." + listed.substr(comma + 2);
}

Policies policies_of_the_header() {
  using enum AutocastPolicy;
  Policies policies;
#define TORCH_LAZY_LOW(...) policies.emplace(full_name(#__VA_ARGS__), kLow);
#define TORCH_LAZY_FLOAT(...) policies.emplace(full_name(#__VA_ARGS__), kFloat);
#define TORCH_LAZY_FLOAT_RESULT(...) policies.emplace(full_name(#__VA_ARGS__), kFloatResult);
#define TORCH_LAZY_FLOAT_OVERLOAD(function, name, ...) \
  policies.emplace(full_name(name), kFloatOverload);
#define TORCH_LAZY_PROMOTE(...) policies.emplace(full_name(#__VA_ARGS__), kPromote);
  AT_FORALL_LOWER_PRECISION_FP(TORCH_LAZY_LOW)
  AT_FORALL_FP32(TORCH_LAZY_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(TORCH_LAZY_FLOAT_RESULT)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(TORCH_LAZY_FLOAT_OVERLOAD)
  AT_FORALL_PROMOTE(TORCH_LAZY_PROMOTE)
#undef TORCH_LAZY_PROMOTE
#undef TORCH_LAZY_FLOAT_OVERLOAD
#undef TORCH_LAZY_FLOAT_RESULT
#undef TORCH_LAZY_FLOAT
#undef TORCH_LAZY_LOW
  return policies;
}

bool is_cast_elsewhere(const c10::OperatorHandle& op) {
  return std::any_of(at::autocast::_AUTOCAST_SUPPORTED_DEVICES.begin(),
                     at::autocast::_AUTOCAST_SUPPORTED_DEVICES.end(), [&](c10::DeviceType type) {
                       return type != at::kCPU &&
                              op.hasKernelForDispatchKey(
                                  at::autocast::get_autocast_dispatch_key_from_device_type(type));
                     });
}

}  // namespace

AutocastPolicies autocast_policies(const c10::OperatorHandle& op) {
  static const Policies listed = policies_of_the_header();
  const std::string name = c10::toString(op.operator_name());
  AutocastPolicies policies;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU))
    policies.on_cpu = policy_on_cpu(name);
  if (const auto found = listed.find(name); found != listed.end())
    policies.elsewhere = found->second;
  else if (is_cast_elsewhere(op))
    policies.elsewhere = AutocastPolicy::kOwn;
  return policies;
}

c10::OperatorHandle overload_with_dtype(const c10::OperatorHandle& op) {
  const std::string& overload = op.operator_name().overload_name;
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      op.operator_name().name.c_str(),
      overload == "Scalar" ? "ScalarOpt_dtype" : (overload + "_dtype").c_str());
}

}  // namespace torch_lazy
