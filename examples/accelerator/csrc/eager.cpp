// The device as PyTorch sees it where it has kernels of its own: those of the CPU, run in commands
// on the device's memory.

#include <ATen/EmptyTensor.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <torch/library.h>

#include "device.h"

namespace accelerator {
namespace {

using c10::DispatchKey, c10::DispatchKeySet, c10::Storage;

/// What stands for tensors in a command: the CPU's, over the same memory. Those that share a
/// storage share one here.
std::vector<at::Tensor> to_cpu(at::TensorList tensors) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_cpu()) {
      found.push_back(tensor);
      continue;
    }
    Storage storage(Storage::use_byte_size_t(), tensor.storage().nbytes(),
                    c10::DataPtr(in_command(tensor.storage().data()), c10::kCPU),
                    c10::GetCPUAllocator(), /*resizable=*/true);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (tensors[i].is_alias_of(tensor)) storage = found[i].storage();
    }
    found.push_back(at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), DispatchKeySet(DispatchKey::CPU), tensor.dtype()));
    found.back().unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                              tensor.storage_offset());
    found.back()._set_conj(tensor.is_conj());
    found.back()._set_neg(tensor.is_neg());
  }
  return found;
}

/// It is waited for where the host has a part in it, and where it may fail.
at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool) {
  if (!to.is_cpu() && !to.is_privateuseone()) return to.copy_(from.cpu());
  const at::Tensor source = from.is_privateuseone() ? from : from.cpu();
  device().enqueue([cpu = to_cpu({to, source})] { cpu[0].copy_(cpu[1]); });
  const bool returns_at_once = from.device() == to.device() && from.sizes() == to.sizes() &&
                               to.is_non_overlapping_and_dense() && !to.is_alias_of(from);
  if (!returns_at_once) device().synchronize();
  return to;
}

/// PyTorch's functions for the CPU would do so by themselves, and read memory that the host cannot.
void grow(const Storage& storage, std::size_t bytes) {
  if (bytes > storage.nbytes()) at::native::resize_bytes_nocuda(storage, bytes);
}

/// Takes what an operator made of an argument's stand-in, which it may have given other memory.
at::Tensor copy_from_and_resize(const at::Tensor& cpu, const at::Tensor& tensor) {
  grow(tensor.storage(), cpu.storage().nbytes());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(),
                                                      cpu.storage_offset());
  at::Tensor result = tensor;
  return cpu.data_ptr() == in_command(tensor.data_ptr()) ? tensor : copy_(result, cpu, false);
}

at::Tensor& fill_(at::Tensor& tensor, const at::Scalar& value) {
  at::empty({1}, tensor.options().device(c10::kCPU)).fill_(value);  // Throws what the CPU throws.
  device().enqueue([cpu = to_cpu(tensor), value] { cpu[0].fill_(value); });
  return tensor;
}

const at::Tensor& resize_(const at::Tensor& tensor, c10::IntArrayRef sizes,
                          std::optional<c10::MemoryFormat> format) {
  grow(tensor.storage(), at::detail::computeStorageNbytesContiguous(sizes, tensor.itemsize(),
                                                                    tensor.storage_offset()));
  return at::native::resize_(tensor, sizes, format);
}

at::Tensor& set_(at::Tensor& tensor, Storage storage, std::int64_t offset, c10::IntArrayRef sizes,
                 c10::IntArrayRef strides) {
  const std::size_t item = tensor.itemsize();
  grow(storage, strides.empty() ? at::detail::computeStorageNbytesContiguous(sizes, item, offset)
                                : at::detail::computeStorageNbytes(sizes, strides, item, offset));
  return at::native::set_storage_cpu_(tensor, std::move(storage), offset, sizes, strides);
}

/// Runs PyTorch's fallback in a command, in the state that this thread is in.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::optional<c10::Device> common;
  for (const auto& value : torch::jit::last(*stack, op.schema().arguments().size())) {
    if (!value.isTensor()) continue;
    const at::Tensor& tensor = value.toTensor();
    const bool number = tensor.defined() && tensor.is_cpu() && tensor.dim() == 0;
    if (!number) c10::impl::check_and_update_common_device(common, tensor, "accel", "an operator");
  }
  const at::ThreadLocalState state;
  auto* const warnings = c10::WarningUtils::get_warning_handler();
  device().enqueue([&] {
    const at::ThreadLocalStateGuard in_state(state);
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const c10::WarningUtils::WarningHandlerGuard to_caller(warnings);
    at::native::cpu_fallback(op, stack);
  });
  device().synchronize();
}

/// What touches no memory: the CPU's function takes tensors of any device.
void run_as_is(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("copy_", &copy_);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_to_cpu", &to_cpu);
  library.impl("fill_.Scalar", &fill_);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage_storage_offset", &set_);
  for (const char* name :
       {"as_strided", "view", "_reshape_alias", "unfold", "view_as_real", "view_as_complex",
        "set_.source_Tensor", "set_.source_Storage", "is_set_to"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_as_is>());
  }
  // Where the CPU has a kernel it is run, and not what PyTorch composes for devices without one; so
  // are those of which PyTorch would choose parts by the device.
  const auto run_whole = [&](const std::string& name) {
    library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  };
  for (const char* name : {"convolution", "convolution_backward"}) run_whole(name);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    const auto has = [&](DispatchKey key) { return op->hasKernelForDispatchKey(key); };
    if (name.getNamespace() == "aten" && op && has(DispatchKey::CPU) &&
        !has(DispatchKey::PrivateUse1) &&
        (has(DispatchKey::CompositeImplicitAutograd) ||
         has(DispatchKey::CompositeExplicitAutograd)))
      run_whole(toString(name));
  }
}

}  // namespace
}  // namespace accelerator
