// PyTorch's operators on the device: the CPU's kernels, over the device's memory. Each waits for
// the current stream and for no other, and is done when it returns.

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <torch/library.h>

#include "fake_cuda/aten_driver.h"
#include "fake_cuda/aten_hooks.h"
#include "fake_cuda/aten_memory.h"
#include "fake_cuda/aten_twins.h"

namespace torch_lazy::fake_cuda {
namespace {

using c10::DispatchKey, c10::DispatchKeySet, c10::Storage;

void grow(const Storage& storage, size_t bytes) {
  if (bytes > storage.nbytes()) resize(storage, bytes);
}

bool fills_empty() {
  return at::globalContext().deterministicAlgorithms() &&
         at::globalContext().deterministicFillUninitializedMemory();
}

at::Tensor made(at::Tensor tensor) {
  if (fills_empty()) at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout>, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  checked_device(device ? device->index() : -1);
  return made(at::detail::empty_generic(sizes, &device_allocator(),
                                        DispatchKeySet(DispatchKey::CUDA),
                                        c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                         std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  checked_device(device ? device->index() : -1);
  return made(at::detail::empty_strided_generic(sizes, strides, &device_allocator(),
                                                DispatchKeySet(DispatchKey::CUDA),
                                                c10::dtype_or_default(dtype)));
}

const at::Tensor& resize_(const at::Tensor& tensor, c10::IntArrayRef sizes,
                          std::optional<c10::MemoryFormat> format) {
  const size_t before = tensor.storage().nbytes();
  grow(tensor.storage(), at::detail::computeStorageNbytesContiguous(sizes, tensor.itemsize(),
                                                                    tensor.storage_offset()));
  at::native::resize_(tensor, sizes, format);
  if (fills_empty()) at::native::fill_resize_deterministic_(tensor, int64_t(before));
  return tensor;
}

at::Tensor& set_(at::Tensor& tensor, Storage storage, int64_t offset, c10::IntArrayRef sizes,
                 c10::IntArrayRef strides) {
  const size_t item = tensor.itemsize();
  grow(storage, strides.empty() ? at::detail::computeStorageNbytesContiguous(sizes, item, offset)
                                : at::detail::computeStorageNbytes(sizes, strides, item, offset));
  return at::native::set_storage_cpu_(tensor, std::move(storage), offset, sizes, strides);
}

at::Tensor& set_nothing_(at::Tensor& tensor) {
  return set_(tensor, Storage(Storage::use_byte_size_t(), 0, &device_allocator(), true), 0, {0},
              {});
}

// Takes what an operator made of an argument's twin, which it may have given other memory.
at::Tensor copy_from_and_resize(const at::Tensor& twin, const at::Tensor& tensor) {
  grow(tensor.storage(), twin.storage().nbytes());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(twin.sizes(), twin.strides(),
                                                      twin.storage_offset());
  if (twin.const_data_ptr() != tensor.const_data_ptr()) tensor.copy_(twin);
  return tensor;
}

void record_stream(at::Tensor& tensor, c10::Stream stream) {
  device_allocator().recordStream(tensor.storage().data_ptr(), stream);
}

// Tensors of an argument, in a list too.
void for_each_tensor(const c10::IValue& value, const auto& visit) {
  if (value.isTensor()) return visit(value.toTensor());
  if (!value.isList()) return;
  for (const c10::IValue& element : value.toListRef()) {
    if (element.isTensor()) visit(element.toTensor());
  }
}

// Numbers may be on the CPU.
void check_one_device(c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> common;
  for (const c10::IValue& value : arguments) {
    if (!value.isTensor()) continue;
    const at::Tensor& tensor = value.toTensor();
    const bool number = tensor.defined() && tensor.is_cpu() && tensor.dim() == 0;
    if (!number) c10::impl::check_and_update_common_device(common, tensor, "cuda", "an operator");
  }
}

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t first = stack->size() - schema.arguments().size();
  check_one_device(torch::jit::last(*stack, schema.arguments().size()));
  ensure_context();
  check(cuStreamSynchronize(current_stream()));

  std::vector<at::Tensor> written;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (value.isGenerator()) value = generator_on_host(value.toGenerator());
    const auto* const alias = schema.arguments()[i].alias_info();
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      tell_reads(reads_of(tensor));
      if (alias && alias->isWrite()) written.push_back(tensor);
    });
  }
  at::native::cpu_fallback(op, stack);
  for (const at::Tensor& tensor : written) tell_writes(writes_of(tensor));
}

// What touches no memory: the CPU's function takes tensors of any device.
void run_as_is(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
}

constexpr auto kRunOnHost = &torch::CppFunction::makeFromBoxedFunction<&run_on_host>;

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(kRunOnHost());
}

// Else the fallback of these would hand over copies, which are not made yet and gone too soon.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_to_cpu", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_to_cpu", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage_storage_offset", &set_);
  library.impl("set_", &set_nothing_);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_to_cpu", &on_host);
  library.impl("record_stream", &record_stream);
  for (const char* name : {"as_strided", "view", "_reshape_alias", "unfold", "view_as_real",
                           "view_as_complex", "set_.source_Tensor", "set_.source_Storage",
                           "is_set_to", "fill_.Scalar", "fill_.Tensor", "zero_"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_as_is>());
  }
  // Where the CPU has a kernel it is run, and not what PyTorch composes for devices without one; so
  // are those of which PyTorch would choose parts by the device, or call CUDA's by no operator.
  for (const char* name : {"convolution", "convolution_backward", "conj_physical_"}) {
    library.impl(name, kRunOnHost());
  }
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    const auto has = [&](DispatchKey key) { return op->hasKernelForDispatchKey(key); };
    if (name.getNamespace() == "aten" && op && has(DispatchKey::CPU) && !has(DispatchKey::CUDA) &&
        (has(DispatchKey::CompositeImplicitAutograd) ||
         has(DispatchKey::CompositeExplicitAutograd))) {
      library.impl(toString(name).c_str(), kRunOnHost());
    }
  }
}

}  // namespace
}  // namespace torch_lazy::fake_cuda
