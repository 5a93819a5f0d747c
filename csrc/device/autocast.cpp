// torch.autocast("lazy"): the casts that autocast makes on the CPU, on tensors of this device.
//
// No autocast key belongs to device type Lazy and a tensor cannot get a key later, so every lazy
// tensor carries AutocastIPU, whose device type has no other user; its state is what Python sets
// (integration/autocast.py). Which operators cast is read from the CPU's registrations, so that it
// follows the torch that runs; which way they cast stands below, for it cannot be read.
#include "device/autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/fork.h"
#include "base/immortal_library.h"
#include "device/lazy_tensor.h"
#include "ops/replace_tensors.h"

namespace torch_lazy {
namespace {

constexpr auto kCarrier = c10::DispatchKey::AutocastIPU;

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

bool is_cacheable(const at::Tensor& tensor, c10::ScalarType dtype) {
  return dtype == low_dtype() && tensor.scalar_type() == at::kFloat && tensor.requires_grad() &&
         tensor.is_leaf() && !tensor.is_view() && at::autocast::is_autocast_cache_enabled();
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

enum class Policy { kLow, kFloat, kPromote };

// The widest dtype among the eligible arguments, at least the low one.
c10::ScalarType promoted(torch::jit::Stack::iterator first, torch::jit::Stack::iterator last) {
  c10::ScalarType widest = low_dtype();
  for (; first != last; ++first)
    replace_tensors(*first, [&](const at::Tensor& tensor) {
      if (is_eligible(tensor) && tensor.scalar_type() == at::kFloat) widest = at::kFloat;
      return tensor;
    });
  return widest;
}

template <Policy policy>
void cast_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kCarrier);
  const auto first = stack->end() - std::ptrdiff_t(op.schema().arguments().size());
  const c10::ScalarType dtype = policy == Policy::kLow     ? low_dtype()
                                : policy == Policy::kFloat ? at::kFloat
                                                           : promoted(first, stack->end());
  for (auto value = first; value != stack->end(); ++value)
    *value = replace_tensors(*value, [&](const at::Tensor& tensor) { return cast(tensor, dtype); });
  op.callBoxed(stack);
}

bool computes_low(const std::string& name) {
  static const std::unordered_set<std::string> names{"aten::conv1d",
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
  return names.count(name) > 0;
}

bool promotes(const std::string& name) {
  return name == "aten::cat" || name == "aten::stack" || name == "aten::index_copy";
}

}  // namespace

void register_autocast() {
  immortal_library(torch::Library::IMPL, "_", kCarrier)
      .fallback(torch::CppFunction::makeFallthrough());
  torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", kCarrier);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& operator_name : dispatcher.getAllOpNames()) {
    if (!operator_name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(operator_name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU)) continue;
    const std::string name = c10::toString(operator_name);
    const std::string local = name.substr(6);
    using torch::CppFunction;
    if (computes_low(name))
      aten.impl(local.c_str(), CppFunction::makeFromBoxedFunction<&cast_kernel<Policy::kLow>>());
    else if (promotes(name))
      aten.impl(local.c_str(),
                CppFunction::makeFromBoxedFunction<&cast_kernel<Policy::kPromote>>());
    else
      aten.impl(local.c_str(), CppFunction::makeFromBoxedFunction<&cast_kernel<Policy::kFloat>>());
  }
}

void clear_autocast_cache() {
  std::unordered_map<const c10::TensorImpl*, CachedCast> dying;  // freed without the lock
  const std::lock_guard<std::mutex> lock(cache().mutex);
  dying.swap(cache().casts);
}

}  // namespace torch_lazy
