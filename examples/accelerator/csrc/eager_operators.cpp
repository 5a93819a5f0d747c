// Every operator runs as the CPU's kernel, in a command, on CPU tensors that stand for the
// device's.

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "device.h"

namespace accelerator {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::Storage;

/// The tensor's other self on another device.
at::Tensor counterpart(const at::Tensor& tensor, Storage storage, DispatchKey device) {
  const DispatchKeySet flags(
      {DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor});
  const c10::InferenceMode mode(tensor.is_inference());  // Of its base too, where it is a view.
  auto result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), DispatchKeySet(device) | (tensor.key_set() & flags), tensor.dtype());
  auto* implementation = result.unsafeGetTensorImpl();
  implementation->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) implementation->set_wrapped_number(true);
  return result;
}

/// Gives a storage of the device's memory of its own, with what one of the host's holds.
void fill(const Storage& storage, const Storage& contents) {
  storage.set_data_ptr_noswap(c10::GetAllocator(c10::kPrivateUse1)->allocate(contents.nbytes()));
  storage.set_nbytes(contents.nbytes());
  enqueue([to = in_command(storage.data()), contents] {
    if (contents.data() != nullptr) std::memcpy(to, contents.data(), contents.nbytes());
  });
}

/// What stands for what in one call. Tensors that share a storage share one on the other device,
/// and one that comes twice stays one.
class Aliases {
 public:
  at::Tensor to_cpu(const at::Tensor& tensor) {
    for (const auto& [device, cpu] : tensors_) {
      if (device.is_same(tensor)) return cpu;
    }
    const bool stays = !tensor.defined() || tensor.is_cpu();
    tensors_.emplace_back(
        tensor, stays ? tensor : counterpart(tensor, to_cpu(tensor.storage()), DispatchKey::CPU));
    return tensors_.back().second;
  }

  Storage to_cpu(const Storage& storage) {
    for (const auto& [device, cpu] : storages_) {
      if (device.is_alias_of(storage)) return cpu;
    }
    TORCH_CHECK(storage.device_type() == c10::kPrivateUse1,
                "Expected a storage on accel, but found one on ", storage.device());
    void* memory = in_command(storage.mutable_data());
    storages_.emplace_back(storage, Storage(Storage::use_byte_size_t(), storage.nbytes(),
                                            c10::DataPtr(memory, c10::kCPU),
                                            c10::GetAllocator(c10::kCPU), storage.resizable()));
    return storages_.back().second;
  }

  at::Tensor to_device(const at::Tensor& tensor) {
    for (const auto& [device, cpu] : tensors_) {
      if (cpu.is_same(tensor)) return device;
    }
    if (!tensor.defined()) return tensor;
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == c10::kStrided,
                                "accel: tensors have layout Strided, not ", tensor.layout());
    tensors_.emplace_back(
        counterpart(tensor, to_device(tensor.storage()), DispatchKey::PrivateUse1), tensor);
    return tensors_.back().first;
  }

  /// Gives the arguments the memory, sizes and storages that the operator gave their aliases.
  void write_back() {
    for (const auto& [device, cpu] : storages_) {
      if (cpu.data() != in_command(device.data()) || cpu.nbytes() != device.nbytes()) {
        fill(device, cpu);
      }
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto [device, cpu] = tensors_[i];
      if (device.is_same(cpu)) continue;
      auto* tensor = device.unsafeGetTensorImpl();
      auto storage = to_device(cpu.storage());
      if (!device.storage().is_alias_of(storage))
        tensor->set_storage_keep_dtype(std::move(storage));
      if (device.sizes() != cpu.sizes() || device.strides() != cpu.strides() ||
          device.storage_offset() != cpu.storage_offset()) {
        tensor->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
      }
    }
  }

 private:
  Storage to_device(const Storage& storage) {
    for (const auto& [device, cpu] : storages_) {
      if (cpu.is_alias_of(storage)) return device;
    }
    auto* allocator = c10::GetAllocator(c10::kPrivateUse1);
    Storage device(Storage::use_byte_size_t(), 0, allocator->allocate(0), allocator, true);
    fill(device, storage);
    storages_.emplace_back(device, storage);
    return device;
  }

  // Each the device's, then the CPU's.
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;
  std::vector<std::pair<Storage, Storage>> storages_;
};

/// Runs work as a command in the state that this thread is in, and throws what it throws.
void run(const std::function<void()>& work) {
  const at::ThreadLocalState state;
  auto* warnings = c10::WarningUtils::get_warning_handler();
  std::exception_ptr error =
      std::make_exception_ptr(std::runtime_error("accel: a command before this one failed"));
  enqueue([&] {
    const at::ThreadLocalStateGuard in_state(state);
    const c10::WarningUtils::WarningHandlerGuard to_caller(warnings);
    try {
      work();
      error = nullptr;
    } catch (...) {
      error = std::current_exception();
    }
  });
  synchronize();
  if (error) std::rethrow_exception(error);
}

/// Runs work, of which it is known that it cannot fail, without waiting for it.
void run_later(std::function<void()> work) {
  enqueue([work = std::move(work), state = at::ThreadLocalState()] {
    const at::ThreadLocalStateGuard in_state(state);
    work();
  });
}

template <typename Convert>
c10::IValue convert_tensors(const c10::IValue& value, const Convert& convert) {
  if (value.isTensor()) return convert(value.toTensor());
  if (!value.isTensorList() && !value.isOptionalTensorList()) return value;
  auto list = value.toList().copy();
  for (std::size_t i = 0; i < list.size(); ++i) {
    list.set(i, convert_tensors(list.get(i), convert));
  }
  return list;
}

/// Where an operator runs: the device that it names, or that of its first tensor on one.
void find_device(const c10::IValue& value, std::optional<c10::Device>& device) {
  if (value.isDevice()) device = value.toDevice();
  convert_tensors(value, [&](const at::Tensor& tensor) {
    if (!device && tensor.defined() && tensor.is_privateuseone()) device = tensor.device();
    return tensor;
  });
}

/// The argument as the CPU's kernel gets it. CPU tensors are for numbers and, in lists, for
/// indices.
c10::IValue to_cpu(Aliases& aliases, const c10::IValue& value) {
  const c10::Device here = c10::impl::VirtualGuardImpl(c10::kPrivateUse1).getDevice();
  if (value.isDevice()) return c10::Device(c10::kCPU);
  if (value.isStorage()) return aliases.to_cpu(value.toStorage());
  return convert_tensors(value, [&](const at::Tensor& tensor) {
    TORCH_CHECK(!tensor.defined() || tensor.device() == here ||
                    (tensor.is_cpu() && (tensor.dim() == 0 || value.isOptionalTensorList())),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                here, " and ", tensor.device(), "!");
    return aliases.to_cpu(tensor);
  });
}

/// Whether an operator returns views of its arguments, and so touches no memory.
bool makes_views(const c10::FunctionSchema& schema) {
  const auto is_view = [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  };
  return !schema.returns().empty() &&
         std::all_of(schema.returns().begin(), schema.returns().end(), is_view);
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::optional<c10::Device> device;
  for (const auto& value : torch::jit::last(*stack, op.schema().arguments().size())) {
    find_device(value, device);
  }
  const c10::OptionalDeviceGuard guard(device);
  Aliases aliases;
  torch::jit::Stack values;
  for (const auto& value : torch::jit::last(*stack, op.schema().arguments().size())) {
    values.push_back(to_cpu(aliases, value));
  }
  const auto call = [&] { op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &values); };
  makes_views(op.schema()) ? call() : run(call);
  aliases.write_back();
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (const auto& value : values) {
    stack->push_back(convert_tensors(
        value, [&](const at::Tensor& tensor) { return aliases.to_device(tensor); }));
  }
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout>, std::optional<c10::Device> device, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, c10::GetAllocator(c10::kPrivateUse1),
                                   DispatchKeySet(DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                         std::optional<c10::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kPrivateUse1),
                                           DispatchKeySet(DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

/// Between any two devices of which one is this one.
at::Tensor& copy_(at::Tensor& destination, const at::Tensor& source, bool) {
  if (!destination.is_cpu() && !destination.is_privateuseone()) {
    return destination.copy_(source.cpu());
  }
  Aliases aliases;
  const auto copy = [to = aliases.to_cpu(destination),
                     from = source.is_privateuseone() ? aliases.to_cpu(source) : source.cpu()] {
    to.copy_(from);
  };
  const bool cannot_fail =
      source.device() == destination.device() && source.sizes() == destination.sizes() &&
      source.dtype() == destination.dtype() && !source.is_alias_of(destination) &&
      at::has_internal_overlap(destination) == at::MemOverlap::No;
  cannot_fail ? run_later(copy) : run(copy);
  return destination;
}

at::Tensor& fill_(at::Tensor& tensor, const at::Scalar& value) {
  at::empty({1}, tensor.options().device(c10::kCPU)).fill_(value);  // Throws what the CPU throws.
  run_later([cpu = Aliases().to_cpu(tensor), value] { cpu.fill_(value); });
  return tensor;
}

at::Tensor& zero_(at::Tensor& tensor) {
  run_later([cpu = Aliases().to_cpu(tensor)] { cpu.zero_(); });
  return tensor;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("copy_", &copy_);
  library.impl("fill_.Scalar", &fill_);
  library.impl("zero_", &zero_);
  // Where the CPU has a kernel it is run, and not the composite, which comes before a fallback.
  // Other composites run as they are, but for two that choose what they call by the device.
  const auto impl = [&](const std::string& name) {
    library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  };
  impl("convolution");
  impl("convolution_backward");
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (name.getNamespace() == "aten" && op && op->hasKernelForDispatchKey(DispatchKey::CPU) &&
        !op->hasKernelForDispatchKey(DispatchKey::PrivateUse1)) {
      impl(toString(name));
    }
  }
}

}  // namespace
}  // namespace accelerator
