// The device's compiler: a command for each call of the operators that it knows. Others run as if
// it had no compiler.

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>

#include <torch_lazy/backend/backend_library.h>
#include <torch_lazy/backend/late_failure.h>
#include <torch_lazy/backend/operators/operator_backend.h>

#include <memory>
#include <sstream>

#include "device.h"

namespace accelerator {
namespace {

using namespace torch_lazy;

/// In a command: calls the chip's library, which is what the CPU has for the operator.
void run(const c10::OperatorHandle& op, const OperatorCall& call,
         const std::vector<void*>& memory) {
  auto address = memory.begin();
  const auto tensor = [&](const TensorDescription& is) {
    return at::from_blob(in_command(*address++), is.sizes, is.strides, is.dtype);
  };
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const auto& [tensors, constant] = call.arguments[i];
    const c10::TypeKind wanted = op.schema().arguments()[i].type()->kind();
    if (wanted == c10::TypeKind::ListType && !tensors.empty()) {
      c10::List<at::Tensor> list;
      for (const TensorDescription& element : tensors) list.push_back(tensor(element));
      stack.emplace_back(std::move(list));
    } else if (!tensors.empty()) {
      stack.emplace_back(tensor(tensors[0]));
    } else if (wanted == c10::TypeKind::TensorType && constant.isScalar()) {
      // Of the operands' dtype, which comparisons have from the other one; a condition stays bool.
      const c10::ScalarType dtype = call.results[0].dtype;
      const at::Tensor number = at::native::wrapped_scalar_tensor(constant.toScalar());
      stack.emplace_back(dtype == c10::kBool || constant.isBool() ? number : number.to(dtype));
    } else {
      stack.push_back(constant.isDevice() ? c10::Device(c10::kCPU) : constant);
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    tensor(call.results[i]).copy_(stack[i].toTensor());
  }
}

/// The command for one call, which may wait on the queue for longer than there is a plan.
DeviceCommand by_library(const OperatorCall& call) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      call.schema->name().c_str(), call.schema->overload_name().c_str());
  const auto kept = std::make_shared<const OperatorCall>(call);
  return [op, kept](c10::ArrayRef<void*> addresses) {
    device().enqueue([op, kept, memory = addresses.vec()] { run(op, *kept, memory); });
  };
}

OperatorTable operators() {
  OperatorTable table;
  std::istringstream names(
      "abs add.Tensor addcmul addmm all.dims amax amin any.dims arange.start_step "
      "bitwise_and.Tensor bitwise_or.Tensor bmm cat clone copy_ cos div.Tensor embedding eq.Tensor "
      "erf exp floor full gather ge.Tensor gt.Tensor index_select isnan le.Tensor log log1p "
      "logical_and logical_not logical_or lt.Tensor maximum minimum mm mul.Tensor ne.Tensor neg "
      "nll_loss_forward pow.Tensor_Tensor reciprocal rsqrt sigmoid sin sqrt sub.Tensor "
      "sum.dim_IntList tanh _to_copy where.self");
  for (std::string name; names >> name;) table.emplace("aten::" + name, by_library);
  return table;
}

#if ACCELERATOR_EAGER
constexpr auto where = [] { return c10::kPrivateUse1; };
#else
// Given away for good: backends are never destroyed.
constexpr auto where = [] { return std::unique_ptr<DeviceRuntime>(&device()); };
#endif

struct AcceleratorBackend final : OperatorBackend {
  AcceleratorBackend() : OperatorBackend(where(), "example accelerator", operators()) {
    device().named = &named;
  }
};

}  // namespace
}  // namespace accelerator

TORCH_LAZY_BACKEND("accel", accelerator::AcceleratorBackend);
