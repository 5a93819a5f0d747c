// The same for operators over lists of tensors, those of optimizers, whose kernel for dispatch key
// Lazy is boxed: PyTorch's autograd kernel would take the GIL for each tensor of each list.
#include "device/past_autograd.h"

#include "device/register.h"

namespace torch_lazy {
namespace {

bool needs_autograd(const c10::IValue& value) {
  if (value.isTensor()) return torch_lazy::needs_autograd(value.toTensor());
  if (!value.isTensorList() && !value.isOptionalTensorList()) return false;
  for (const c10::IValue& element : value.toListRef())
    if (element.isTensor() && torch_lazy::needs_autograd(element.toTensor())) return true;
  return false;
}

void count_version(const c10::IValue& written) {
  if (written.isTensor()) written.toTensor().unsafeGetTensorImpl()->bump_version();
  if (!written.isTensorList()) return;
  for (const c10::IValue& element : written.toListRef())
    element.toTensor().unsafeGetTensorImpl()->bump_version();
}

void past_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  const std::vector<c10::Argument>& declared = op.schema().arguments();
  const auto arguments = torch::jit::last(*stack, declared.size());
  c10::SmallVector<c10::IValue, 3> written;
  bool generated = false;
  for (size_t i = 0; i < declared.size(); ++i) {
    generated |= needs_autograd(arguments[i]);
    const c10::AliasInfo* const alias = declared[i].alias_info();
    if (alias && alias->isWrite()) written.push_back(arguments[i]);
  }
  const bool counts_versions = keys.has(c10::DispatchKey::ADInplaceOrView);
  const c10::DispatchKeySet below = keys & c10::after_ADInplaceOrView_keyset;
  generated |= below.highestPriorityTypeId() != c10::DispatchKey::Lazy ||
               (counts_versions && written.empty());
  if (generated) return op.redispatchBoxed(to_generated_kernel(keys), stack);
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.redispatchBoxed(below, stack);
  if (!counts_versions) return;
  for (const c10::IValue& value : written) count_version(value);
}

bool takes_a_list_first(const c10::FunctionSchema& schema) {
  return !schema.arguments().empty() &&
         schema.arguments()[0].type()->isSubtypeOf(*c10::ListType::ofTensors());
}

}  // namespace

void register_past_autograd_of_lists(torch::Library& autograd) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !takes_a_list_first(op->schema()) || !may_go_past_autograd(*op) ||
        !op->hasKernelForDispatchKey(c10::DispatchKey::Lazy) ||
        op->hasKernelForDispatchKey(c10::DispatchKey::AutogradLazy))
      continue;
    autograd.impl(c10::toString(name).substr(6).c_str(),
                  torch::CppFunction::makeFromBoxedFunction<&past_autograd>());
  }
}

}  // namespace torch_lazy
