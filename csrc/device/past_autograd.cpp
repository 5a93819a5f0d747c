// Operators over lists of tensors, whose kernels are boxed: PyTorch's autograd kernel would take
// the GIL for each tensor of each list.
#include "device/past_autograd.h"

#include "ops/replace_tensors.h"

namespace torch_lazy {
namespace {

void boxed_past_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) {
  const std::vector<c10::Argument>& declared = op.schema().arguments();
  const auto arguments = torch::jit::last(*stack, declared.size());
  c10::SmallVector<c10::IValue, 3> written;
  bool recorded = false;
  for (size_t i = 0; i < declared.size(); ++i) {
    recorded |=
        any_tensor(arguments[i], [](const at::Tensor& tensor) { return needs_autograd(tensor); });
    const c10::AliasInfo* const alias = declared[i].alias_info();
    if (alias && alias->isWrite()) written.push_back(arguments[i]);
  }
  if (recorded || !only_lazy_below(keys, !written.empty()))
    return op.redispatchBoxed(to_generated_kernel(keys), stack);
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  if (!keys.has(c10::DispatchKey::ADInplaceOrView)) return;
  for (const c10::IValue& value : written)
    for_each_tensor(value,
                    [](const at::Tensor& tensor) { tensor.unsafeGetTensorImpl()->bump_version(); });
}

bool takes_a_list_first(const c10::FunctionSchema& schema) {
  return !schema.arguments().empty() &&
         schema.arguments()[0].type()->isSubtypeOf(*c10::ListType::ofTensors());
}

// Python's dispatcher, which programs are traced with, has kernels of its own for autograd of these
// (torch/_decomp), and refuses to choose among those of other backends.
bool is_taken_apart_in_python(const std::string& name) {
  return name.find("upsample_nearest") != std::string::npos;
}

}  // namespace

bool may_go_past_autograd(const c10::OperatorHandle& op) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::Autograd) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return false;
  const c10::FunctionSchema& schema = op.schema();
  if (is_taken_apart_in_python(schema.name())) return false;
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite()) return false;
  const Effects& effects = effects_of(op);
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if (effects.arguments[i].writes && !(alias && alias->isWrite())) return false;
  }
  return !effects.inplace_view;
}

void register_boxed_past_autograd(const c10::OperatorHandle& op, torch::Library& autograd) {
  if (takes_a_list_first(op.schema()) && may_go_past_autograd(op))
    autograd.impl(c10::toString(op.operator_name()).substr(6).c_str(),
                  torch::CppFunction::makeFromBoxedFunction<&boxed_past_autograd>());
}

}  // namespace torch_lazy
