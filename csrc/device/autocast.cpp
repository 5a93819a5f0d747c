// torch.autocast("lazy"): the casts that autocast makes on the device that lazy tensors live on, or
// on the CPU where that device registers none, on lazy tensors.
//
// No autocast key belongs to device type Lazy. AutocastIPU stands in, whose device type has no
// other user: while it is enabled, a thread includes it in what operators are dispatched by
// (integration/autocast.py), so that it is seen of every kind of tensor of the device, those of
// Python's subclasses too. Operators on tensors of other devices then come here, and are left
// alone.
#include "device/autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "backend/execution_device.h"
#include "base/fork.h"
#include "base/immortal_library.h"
#include "device/autocast_policies.h"
#include "device/lazy_tensor.h"
#include "ops/replace_tensors.h"

namespace torch_lazy {
namespace {

constexpr auto kCarrier = c10::DispatchKey::AutocastIPU;

using Arguments = torch::jit::Stack::iterator;

// Casts of parameters, each made once until the outermost autocast region ends; the weak reference
// keeps the address from being used again, not the tensor alive.
struct CachedCast {
  c10::weak_intrusive_ptr<c10::TensorImpl> source;
  at::Tensor cast;
};
struct CastCache {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards `casts`; not held while a cast is made
  std::unordered_map<const c10::TensorImpl*, CachedCast> casts;
};
// Global as PyTorch's own, since the end of a region is told to the process.
CastCache& cache() {
  static auto& instance = *new CastCache;
  return instance;
}

c10::ScalarType low_dtype() {
  return at::autocast::get_autocast_dtype(at::kIPU);
}

bool is_eligible(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::Lazy &&
         tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

bool has_lazy_tensor(Arguments first, Arguments last) {
  return std::any_of(first, last, [](const c10::IValue& argument) {
    return any_tensor(argument, [](const at::Tensor& tensor) {
      return tensor.defined() && tensor.device().is_lazy();
    });
  });
}

// A cast made without gradients would cut off those of a later use.
bool is_cacheable(const at::Tensor& tensor, c10::ScalarType dtype) {
  return dtype == low_dtype() && c10::GradMode::is_enabled() &&
         tensor.scalar_type() == at::kFloat && tensor.requires_grad() && tensor.is_leaf() &&
         !tensor.is_view() && at::autocast::is_autocast_cache_enabled();
}

at::Tensor cast(const at::Tensor& tensor, c10::ScalarType dtype) {
  if (!is_eligible(tensor) || tensor.scalar_type() == dtype) return tensor;
  if (!is_cacheable(tensor, dtype)) return tensor.to(dtype);
  const c10::TensorImpl* const source = tensor.unsafeGetTensorImpl();
  {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    const auto found = cache().casts.find(source);
    if (found != cache().casts.end()) return found->second.cast;
  }
  at::Tensor made = tensor.to(dtype);
  const std::lock_guard<std::mutex> lock(cache().mutex);
  cache().casts.try_emplace(
      source, CachedCast{c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), made});
  return made;
}

// The widest dtype among the eligible arguments, at least the low one.
c10::ScalarType promoted(Arguments first, Arguments last) {
  c10::ScalarType widest = low_dtype();
  for (; first != last; ++first)
    replace_tensors(*first, [&](const at::Tensor& tensor) {
      if (is_eligible(tensor) && tensor.scalar_type() == at::kFloat) widest = at::kFloat;
      return tensor;
    });
  return widest;
}

void cast_all(Arguments first, Arguments last, c10::ScalarType dtype) {
  for (; first != last; ++first)
    *first = replace_tensors(*first, [&](const at::Tensor& tensor) { return cast(tensor, dtype); });
}

// The results are float32, whatever the arguments are, unless the call says what they are.
void ask_for_float(const c10::OperatorHandle& op, Arguments first) {
  if (!first->isTensor() || !is_eligible(first->toTensor())) return;
  const std::optional<int> dtype = op.schema().argumentIndexWithName("dtype");
  if (dtype && first[*dtype].isNone()) first[*dtype] = at::kFloat;
}

void call_overload_with_float(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::IValue& tensor = *(stack->end() - std::ptrdiff_t(op.schema().arguments().size()));
  if (!is_eligible(tensor.toTensor())) return op.callBoxed(stack);
  stack->emplace_back(at::kFloat);
  overload_with_dtype(op).callBoxed(stack);
}

class CastKernel final : public c10::OperatorKernel {
 public:
  explicit CastKernel(AutocastPolicies policies) : policies_(policies) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) const {
    const Arguments first = stack->end() - std::ptrdiff_t(op.schema().arguments().size());
    // Asked first: the policy depends on the execution device, which operators on tensors of other
    // devices must not choose. They have nothing to cast.
    const AutocastPolicy policy =
        has_lazy_tensor(first, stack->end()) ? policy_here(op) : AutocastPolicy::kNone;
    if (policy == AutocastPolicy::kNone) {  // what the operator consists of may cast
      const c10::DispatchKeySet after(c10::DispatchKeySet::FULL_AFTER, kCarrier);
      return op.redispatchBoxed(keys & after, stack);
    }
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(kCarrier);
    switch (policy) {
      case AutocastPolicy::kNone:
        break;
      case AutocastPolicy::kLow:
        cast_all(first, stack->end(), low_dtype());
        break;
      case AutocastPolicy::kFloat:
        cast_all(first, stack->end(), at::kFloat);
        break;
      case AutocastPolicy::kPromote:
        cast_all(first, stack->end(), promoted(first, stack->end()));
        break;
      case AutocastPolicy::kFloatResult:
        ask_for_float(op, first);
        break;
      case AutocastPolicy::kFloatOverload:
        return call_overload_with_float(op, stack);
      case AutocastPolicy::kOwn:
        return op.callBoxedForDispatchKey(execution_device().autocast_key, *stack);
    }
    op.callBoxed(stack);
  }

 private:
  AutocastPolicy policy_here(const c10::OperatorHandle& op) const {
    const ExecutionDevice& device = execution_device();
    if (device.casts_as_cpu()) return policies_.on_cpu;
    return op.hasKernelForDispatchKey(device.autocast_key) ? policies_.elsewhere
                                                           : AutocastPolicy::kNone;
  }

  AutocastPolicies policies_;
};

}  // namespace

void register_autocast() {
  immortal_library(torch::Library::IMPL, "_", kCarrier)
      .fallback(torch::CppFunction::makeFallthrough());
  torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", kCarrier);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;
    const AutocastPolicies policies = autocast_policies(*op);
    if (policies.on_cpu == AutocastPolicy::kNone && policies.elsewhere == AutocastPolicy::kNone)
      continue;
    aten.impl(c10::toString(name).substr(6).c_str(),
              torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CastKernel>(policies)));
  }
}

bool is_autocast_active() {
  return at::autocast::is_autocast_enabled(at::kIPU);
}

void clear_autocast_cache() {
  std::unordered_map<const c10::TensorImpl*, CachedCast> dying;  // freed without the lock
  const std::lock_guard<std::mutex> lock(cache().mutex);
  dying.swap(cache().casts);
}

}  // namespace torch_lazy
