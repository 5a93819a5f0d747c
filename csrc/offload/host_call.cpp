#include "offload/host_call.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "ops/replace_tensors.h"

namespace torch_lazy {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// The tensor's other self on another device.
at::Tensor counterpart(const at::Tensor& tensor, c10::Storage storage, DispatchKey device) {
  constexpr DispatchKeySet kFlags(
      {DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor});
  const c10::InferenceMode mode(tensor.is_inference());  // of its base too, where it is a view
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), DispatchKeySet(device) | (tensor.key_set() & kFlags), tensor.dtype());
  c10::TensorImpl& impl = *made.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl.set_wrapped_number(true);
  return made;
}

bool makes_views(const Effects& effects) {
  const auto is_view = [](const ReturnEffect& made) { return made.kind == ReturnKind::AliasOf; };
  return effects.known && !effects.writes_any() && !effects.returns.empty() &&
         std::all_of(effects.returns.begin(), effects.returns.end(), is_view);
}

}  // namespace

at::Tensor lent_on_host(const at::Tensor& tensor, Access access, std::string_view cause) {
  MirroredStorage& storage = *mirrored(tensor.storage());
  c10::Storage host = storage.begin_on_host(access, cause);
  storage.end_on_host(writes(access));
  return counterpart(tensor, std::move(host), DispatchKey::CPU);
}

void take_back_from_host(const at::Tensor& device, const at::Tensor& lent) {
  MirroredStorage& storage = *mirrored(device.storage());
  storage.begin_on_host(Access::kNone, "");
  storage.end_on_host(/*wrote=*/true);
  device.unsafeGetTensorImpl()->set_sizes_and_strides(lent.sizes(), lent.strides(),
                                                      lent.storage_offset());
}

at::Tensor adopted_from_host(const at::Tensor& tensor, c10::Device device) {
  c10::Storage made = make_mirrored_storage(tensor.storage().nbytes(), device);
  mirrored(made)->adopt(tensor.storage());
  return counterpart(tensor, std::move(made), DispatchKey::PrivateUse1);
}

at::Tensor viewed_on_device(const at::Tensor& view, const at::Tensor& device) {
  return counterpart(view, device.storage(), DispatchKey::PrivateUse1);
}

HostCall::HostCall(const OperatorInfo& op)
    : op_(op),
      here_(c10::impl::VirtualGuardImpl(c10::kPrivateUse1).getDevice()),
      makes_views_(makes_views(*op.effects)) {}

// Where an argument was refused, the operator has not run.
HostCall::~HostCall() {
  for (const Storage& storage : storages_)
    if (storage.in_use) mirrored(storage.device)->end_on_host(/*wrote=*/false);
}

// ---------------------------------------------------------------- to the host

Access HostCall::access(size_t argument, const at::Tensor& tensor) const {
  const Effects& effects = *op_.effects;
  if (!effects.known) return Access::kWrite;  // it may do anything
  if (makes_views_) return Access::kNone;
  if (!effects.arguments[argument].writes) return Access::kRead;
  // An out= argument is not overwritten where it is resized to less.
  return argument == 0 && effects.overwrites_first_argument ? overwriting(tensor) : Access::kWrite;
}

c10::IValue HostCall::to_host(size_t argument, const c10::IValue& value) {
  if (value.isDevice()) return c10::Device(c10::kCPU);
  if (value.isStorage())  // set_ looks at its size
    return to_host(value.toStorage(), op_.effects->inplace_view ? Access::kNone : Access::kWrite);
  return replace_tensors(value, [&](const at::Tensor& tensor) -> at::Tensor {
    if (!tensor.defined()) return tensor;
    TORCH_CHECK(tensor.device() == here_ ||
                    (tensor.is_cpu() && (tensor.dim() == 0 || value.isOptionalTensorList())),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                here_, " and ", tensor.device(), "!");
    return to_host(tensor, tensor.is_cpu() ? Access::kNone : access(argument, tensor));
  });
}

at::Tensor HostCall::to_host(const at::Tensor& tensor, Access access) {
  const c10::Storage storage = tensor.is_cpu() ? c10::Storage() : to_host(tensor.storage(), access);
  for (const Tensor& known : tensors_)
    if (known.device.is_same(tensor)) return known.host;
  tensors_.push_back(
      {tensor, tensor.is_cpu() ? tensor : counterpart(tensor, storage, DispatchKey::CPU)});
  return tensors_.back().host;
}

c10::Storage HostCall::to_host(const c10::Storage& storage, Access access) {
  MirroredStorage* const mirror = mirrored(storage);
  TORCH_CHECK(mirror, op_.name, ": expected a storage that device ", here_,
              " has made, but found part of one, or memory from outside, on ", storage.device(),
              ": copy it to the CPU first");
  c10::Storage host = mirror->begin_on_host(access, op_.name);
  for (Storage& known : storages_) {
    if (!known.device.is_alias_of(storage)) continue;
    mirror->end_on_host(/*wrote=*/false);  // it is in use already
    // Where two arguments are one storage, what one reads the other does not overwrite unread.
    if (known.access != access)
      known.access =
          writes(known.access) || writes(access) ? Access::kWrite : std::max(known.access, access);
    return host;
  }
  storages_.push_back({storage, host, access, /*in_use=*/true});
  return host;
}

// ---------------------------------------------------------------- to the device

c10::Storage HostCall::to_device(const c10::Storage& storage) {
  for (const Storage& known : storages_)
    if (known.host.is_alias_of(storage)) return known.device;
  c10::Storage device = make_mirrored_storage(storage.nbytes(), here_);
  mirrored(device)->adopt(storage);
  storages_.push_back({device, storage, Access::kRead});
  return device;
}

at::Tensor HostCall::to_device(const at::Tensor& tensor) {
  for (const Tensor& known : tensors_)
    if (known.host.is_same(tensor)) return known.device;
  if (!tensor.defined()) return tensor;
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == c10::kStrided, op_.name, " returned a ",
                              tensor.layout(), " tensor, and device ", here_,
                              " has strided ones: call it on the cpu");
  tensors_.push_back(
      {counterpart(tensor, to_device(tensor.storage()), DispatchKey::PrivateUse1), tensor});
  return tensors_.back().device;
}

c10::IValue HostCall::to_device(const c10::IValue& value) {
  return replace_tensors(value, [this](const at::Tensor& tensor) { return to_device(tensor); });
}

void HostCall::write_back(bool raised) {
  for (Storage& storage : storages_) {
    if (!std::exchange(storage.in_use, false)) continue;
    const bool wrote = writes(storage.access) && !(raised && storage.access == Access::kOverwrite);
    mirrored(storage.device)->end_on_host(wrote);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) write_back(Tensor(tensors_[i]));
}

// An operator may have resized, transposed or moved what it wrote to.
void HostCall::write_back(const Tensor& tensor) {
  const auto& [device, host] = tensor;
  if (device.is_same(host)) return;
  c10::TensorImpl& impl = *device.unsafeGetTensorImpl();
  c10::Storage storage = to_device(host.storage());
  if (!device.storage().is_alias_of(storage)) impl.set_storage_keep_dtype(std::move(storage));
  if (device.sizes() != host.sizes() || device.strides() != host.strides() ||
      device.storage_offset() != host.storage_offset())
    impl.set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
}

}  // namespace torch_lazy
