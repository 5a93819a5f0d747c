#include "offload/host_operators.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <utility>

#include "base/immortal_library.h"
#include "offload/copy_on_device.h"
#include "offload/host_call.h"
#include "ops/operator_info.h"
#include "ops/replace_tensors.h"

namespace torch_lazy {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DispatchKeySet kHost{DispatchKey::CPU};

// Where an operator runs: the device that it names, or that of its first tensor on one.
void find_device(const c10::IValue& value, std::optional<c10::Device>& device) {
  if (value.isDevice()) device = value.toDevice();
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    if (!device && tensor.defined() && tensor.is_privateuseone()) device = tensor.device();
  });
}

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  std::optional<c10::Device> device;
  for (const c10::IValue& value : arguments) find_device(value, device);
  const c10::OptionalDeviceGuard guard(device);
  HostCall call(operator_info(op));
  torch::jit::Stack values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) values.push_back(call.to_host(i, arguments[i]));
  call.run([&] { op.redispatchBoxed(kHost, &values); });
  torch::jit::drop(*stack, count);
  for (const c10::IValue& value : values) stack->push_back(call.to_device(value));
}

at::Tensor make_tensor(size_t bytes, caffe2::TypeMeta dtype) {
  const c10::Device here = c10::impl::VirtualGuardImpl(c10::kPrivateUse1).getDevice();
  return at::detail::make_tensor<c10::TensorImpl>(make_mirrored_storage(bytes, here),
                                                  DispatchKeySet(DispatchKey::PrivateUse1), dtype);
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout>, std::optional<c10::Device> device, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  const c10::OptionalDeviceGuard guard(device);
  const auto type = c10::scalarTypeToTypeMeta(c10::dtype_or_default(dtype));
  at::Tensor made =
      make_tensor(at::detail::computeStorageNbytesContiguous(sizes, type.itemsize()), type);
  made.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format) made.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return made;
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                         std::optional<c10::Device> device, std::optional<bool>) {
  at::detail::check_size_nonnegative(sizes);
  const c10::OptionalDeviceGuard guard(device);
  const auto type = c10::scalarTypeToTypeMeta(c10::dtype_or_default(dtype));
  at::Tensor made =
      make_tensor(at::detail::computeStorageNbytes(sizes, strides, type.itemsize()), type);
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

// Between any two devices of which one is this one.
at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  static const OperatorInfo& op = operator_info("aten::copy_", "");
  if (!to.is_cpu() && !to.is_privateuseone()) return to.copy_(from.cpu(), non_blocking);
  // Where the host has the bytes too, it may be the one to read the copy.
  const MirroredStorage* const mirror = mirrored(from.storage());
  if (mirror && !mirror->is_on_host() && copy_on_device(to, from)) return to;
  const c10::DeviceGuard guard(to.is_cpu() ? from.device() : to.device());
  HostCall call(op);
  const at::Tensor target = call.to_host(to, call.access(0, to));
  const at::Tensor source =
      from.is_privateuseone() ? call.to_host(from, Access::kRead) : from.cpu();
  call.run([&] { at::Tensor(target).copy_(source); });
  return to;
}

}  // namespace

// Where the CPU has a kernel it is run, and not the composite, which comes before a fallback. Other
// composites run as they are, but for two that choose what they call by the device. The CPU's
// choice among its kernels of attention is none for the device, which composes it
// (device/attention.cpp).
void register_host_operators() {
  const auto boxed = [] { return torch::CppFunction::makeFromBoxedFunction<&run_on_host>(); };
  immortal_library(torch::Library::IMPL, "_", DispatchKey::PrivateUse1).fallback(boxed());
  torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", DispatchKey::PrivateUse1);
  aten.impl("empty.memory_format", &empty);
  aten.impl("empty_strided", &empty_strided);
  aten.impl("copy_", &copy_);
  aten.impl("convolution", boxed());
  aten.impl("convolution_backward", boxed());
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (name.getNamespace() == "aten" && name.name != "aten::_fused_sdp_choice" && op &&
        op->hasKernelForDispatchKey(DispatchKey::CPU) &&
        !op->hasKernelForDispatchKey(DispatchKey::PrivateUse1))
      aten.impl(c10::toString(name).c_str(), boxed());
  }
}

}  // namespace torch_lazy
