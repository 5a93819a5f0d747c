// Which operators have a kernel of this device, and whether it is boxed.
//
// The fallback catches operators without a composite kernel. A CompositeExplicitAutograd kernel
// hides an operator from the fallback: it would run on lazy tensors and take them apart, and
// composite view kernels would make plain TensorImpls. So all of those are registered by name,
// except the few below, and whatever has a typed kernel, which the fallback would box. A
// CompositeImplicitAutograd kernel takes an operator apart above autograd, on the CPU too, unless
// the CPU has a kernel of its own.
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/immortal_library.h"
#include "base/without_gil.h"
#include "device/autocast.h"
#include "device/boxed.h"
#include "device/dispatched_operation.h"
#include "device/lazy_storage.h"
#include "device/new_operators.h"
#include "device/register.h"
#include "device/typed_operators.h"
#include "ops/attention_operator.h"
#include "ops/cudnn_rnn_operator.h"
#include "ops/one_hot_operator.h"
#include "ops/philox_operators.h"
#include "ops/rnn_layer_operator.h"

namespace torch_lazy {
namespace {

// Kept composite, or registered elsewhere, each for a reason.
bool keeps_own_kernel(const std::string& name) {
  static const std::unordered_set<std::string> names{
      // Registered in copies.cpp and storage_operators.cpp.
      "aten::copy_",
      "aten::_to_copy",
      "aten::_copy_from",
      "aten::_copy_from_and_resize",
      "aten::_foreach_copy_",
      "aten::set_",
      // Registered in empty_operators.cpp and composites.cpp.
      "aten::empty_like",
      "aten::convolution",
      // Read metadata only; the memory comes from empty and empty_strided, which run at the call.
      "aten::new_empty",
      "aten::new_empty_strided",
      "aten::empty.names",
      // Its second result, sizes of batches, is on the CPU for tensors of every device.
      "aten::_pack_padded_sequence",
      // Flip a bit on an alias: no memory is touched.
      "aten::_conj",
      "aten::_neg_view",
      "aten::_conj_physical",
      // Autograd's and the dispatcher's own bookkeeping, never about memory.
      "aten::_fw_primal",
      "aten::_make_dual",
      "aten::_unpack_dual",
      "aten::_has_same_storage_numel",
      "aten::lift",
      "aten::lift_fresh",
  };
  return names.count(name) > 0;
}

bool mentions_tensor(const std::vector<c10::Argument>& values) {
  for (const c10::Argument& value : values) {
    const c10::TypePtr& type = value.type();
    if (type->kind() == c10::TypeKind::TensorType ||
        type->isSubtypeOf(*c10::OptionalType::ofTensor()) ||
        type->isSubtypeOf(*c10::ListType::ofTensors()) ||
        type->isSubtypeOf(*c10::ListType::ofOptionalTensors()))
      return true;
  }
  return false;
}

// Operators over storages, streams and layouts the device does not have would only fail later and
// less clearly; their composite kernels say what is wrong. Those that make tensors of other kinds
// are registered where these are.
bool worth_keeping_whole(const c10::FunctionSchema& schema) {
  if (!mentions_tensor(schema.returns()) && !schema.returns().empty()) return false;
  if (schema.returns().empty() && !mentions_tensor(schema.arguments())) return false;
  const std::string& name = schema.name();
  return name.find("sparse") == std::string::npos && name.find("nested") == std::string::npos &&
         name.find("quantize") == std::string::npos && name.find("mkldnn") == std::string::npos;
}

// Operators that are nothing but a composite, which PyTorch keeps from device Lazy. The CPU takes
// them apart below autocast, which casts their parts: linalg.pinv multiplies in bfloat16. Of other
// composites one is known with parts of which autocast makes something else, the layer of an
// encoder (composites.cpp): they are kept whole.
bool may_be_cast_in_parts(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(kComposite) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) && !op.schema().is_mutable() &&
         mentions_tensor(op.schema().arguments());
}

bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

bool is_whole_on_the_cpu(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return true;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// Null for an operator that is boxed: only the boxed kernel counts versions.
const TypedOperators::Kernels* typed_kernels(const TypedOperators& typed,
                                             const c10::OperatorHandle& op, bool is_cast_in_parts) {
  if (op.schema().is_mutable() && operator_info(op).counts_versions) return nullptr;
  const auto* const kernels = typed.find(op);
  return kernels && kernels->is_composite == is_cast_in_parts ? kernels : nullptr;
}

void register_typed(const c10::OperatorHandle& op, const TypedOperators::Kernels& kernels) {
  // For good, as libraries of kernels are.
  static auto* const registered = new std::vector<c10::RegistrationHandleRAII>;
  const auto add = [&](c10::DispatchKey key, c10::KernelFunction kernel) {
    registered->push_back(c10::Dispatcher::singleton().registerImpl(
        op.operator_name(), key, std::move(kernel), kernels.signature, nullptr,
        "torch_lazy, " __FILE__));
  };
  add(c10::DispatchKey::Lazy, kernels.kernel(op));
  if (kernels.past_autograd && may_go_past_autograd(op))
    add(c10::DispatchKey::AutogradLazy, kernels.past_autograd(op));
}

void register_boxed(const c10::OperatorHandle& op, bool is_cast_in_parts, torch::Library& aten,
                    torch::Library& autograd) {
  auto kernel = is_cast_in_parts ? torch::CppFunction::makeFromBoxedFunction<&composite_kernel>()
                                 : torch::CppFunction::makeFromBoxedFunction<&boxed_kernel>();
  aten.impl(c10::toString(op.operator_name()).substr(6).c_str(), std::move(kernel));
  if (!is_cast_in_parts) register_boxed_past_autograd(op, autograd);
}

torch::Library& library(const char* name_space, c10::DispatchKey key) {
  return immortal_library(torch::Library::IMPL, name_space, key);
}

}  // namespace

void register_operators() {
  library("_", c10::DispatchKey::Lazy)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_kernel>());

  torch::Library& aten = library("aten", c10::DispatchKey::Lazy);
  torch::Library& autograd = library("aten", c10::DispatchKey::AutogradLazy);
  register_copies(aten);
  register_empty_operators(aten);
  register_storage_operators(aten);
  register_random_kernels(aten);
  register_streams(aten);
  register_sync_batch_norm(aten);
  register_histogram(aten);
  register_view_autograd(autograd);

  TypedOperators typed;
  add_typed_operators(typed);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || op->hasKernelForDispatchKey(c10::DispatchKey::Lazy)) continue;
    const bool is_cast_in_parts = may_be_cast_in_parts(*op);
    if (!is_cast_in_parts &&
        (!is_whole_on_the_cpu(*op) || keeps_own_kernel(name.name) ||
         keeps_own_kernel(c10::toString(name)) || !worth_keeping_whole(op->schema())))
      continue;
    if (const auto* const kernels = typed_kernels(typed, *op, is_cast_in_parts))
      register_typed(*op, *kernels);
    else if (is_cast_in_parts || is_composite(*op))
      register_boxed(*op, is_cast_in_parts, aten, autograd);
  }
}

// Asked before lazy tensors may live on another device.
static int64_t storages_in_use() {
  const WithoutGil without_gil;
  Recorder::synchronize_all();
  return ObjectPool<LazyStorage>::in_use();
}

void register_device() {
  set_device_census(&storages_in_use);
  register_philox_operators();
  register_one_hot_operator();
  register_rnn_layer_operator();
  register_cudnn_rnn_operator();
  register_attention_operator();
  register_guard();
  register_sparse_operators();
  register_nested_operators();
  watch_for_new_operators();
  register_quantized_operators();
  register_composites();
  register_attention();
  register_recurrent_modules();
  register_collectives();
  register_operators();  // of all that has no kernel yet
  register_data_parallel_timer();
  register_autocast();
  register_submission_names();
}

}  // namespace torch_lazy
