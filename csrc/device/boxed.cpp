#include "device/boxed.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "device/autocast.h"
#include "device/call.h"
#include "device/devices_agree.h"
#include "device/dispatched_operation.h"
#include "device/generator.h"
#include "ops/replace_tensors.h"
#include "plan/step.h"

namespace torch_lazy {
namespace {

at::Tensor inner_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  LazyTensorImpl* impl = lazy_impl(tensor);
  return impl ? impl->inner() : tensor;
}

void count_versions(const Effects& effects, c10::ArrayRef<c10::IValue> arguments) {
  const auto count = [](const at::Tensor& tensor) {
    if (tensor.defined() && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  };
  for (size_t i = 0; i < arguments.size(); ++i)
    if (effects.arguments[i].writes) for_each_tensor(arguments[i], count);
}

void push_deferred(const c10::FunctionSchema& schema, std::span<at::Tensor> outputs,
                   torch::jit::Stack* stack) {
  if (schema.returns().empty()) return;
  if (schema.returns()[0].type()->kind() == c10::TypeKind::TensorType) {
    for (at::Tensor& output : outputs) stack->emplace_back(std::move(output));
    return;
  }
  stack->emplace_back(
      c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(outputs.data(), outputs.size())));
}

// Replaces inner results from `base` on by lazy ones.
void wrap_results(Call& call, const c10::FunctionSchema& schema, size_t base,
                  torch::jit::Stack* stack) {
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    c10::IValue& value = (*stack)[base + i];
    if (value.isTensor()) {
      const int source = call.op().returned_arguments[i];
      value = source >= 0 ? call.argument(size_t(source)) : call.wrap(std::move(value).toTensor());
    } else {
      value = replace_tensors(
          value, [&call](const at::Tensor& tensor) { return call.wrap(at::Tensor(tensor)); });
    }
  }
}

}  // namespace

c10::IValue inner_value(const c10::IValue& value) {
  if (value.isDevice()) return inner_device(value.toDevice());
  if (value.isGenerator()) return inner_generator(value.toGenerator());
  return replace_tensors(value, inner_tensor);
}

void boxed_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t base = stack->size() - count;
  const c10::ArrayRef<c10::IValue> arguments(stack->data() + base, count);

  // Of an eager operation: the arguments outlive the call, which refers to them where the operator
  // raises, and whose outputs may be views of them.
  c10::SmallVector<c10::IValue, 12> kept;
  Call call(operator_info(op));
  for (const c10::IValue& argument : arguments) call.inspect(argument);
  const DispatchMode mode = call.dispatch_mode();
  if (mode == DispatchMode::kMeta)
    return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  if (!call.all_lazy() && !call.op().takes_cpu_tensors) check_devices_agree(call.op(), arguments);

  if (mode == DispatchMode::kTraced) {
    OpenOperation& operation = call.begin();
    for (size_t i = 0; i < count; ++i)
      encode(operation, arguments[i], *schema.arguments()[i].type());
    if (call.match()) {
      const std::span<at::Tensor> outputs = call.deferred_outputs();
      if (call.op().counts_versions) count_versions(*call.op().effects, arguments);
      stack->resize(base);
      return push_deferred(schema, outputs, stack);
    }
  }
  kept.resize(count);
  for (size_t i = 0; i < count; ++i) {
    c10::IValue& argument = (*stack)[base + i];
    kept[i] = std::move(argument);
    argument = inner_value(kept[i]);
  }
  {
    const DispatchedOperation dispatched(call.op());
    const CollectWarnings collected(call.warnings());
    run_below_autograd(op, stack);
  }
  if (call.op().counts_versions) count_versions(*call.op().effects, kept);
  call.complete([&] { wrap_results(call, schema, base, stack); });
}

void composite_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
  if (is_autocast_active()) return op.callBoxedForDispatchKey(kComposite, *stack);
  boxed_kernel(op, keys, stack);
}

}  // namespace torch_lazy
