#include "offload/copy_on_device.h"

#include "offload/mirrored_storage.h"
#include "offload/runtime_device.h"

namespace torch_lazy {
namespace {

// Of two storages: within one, elements may overlap, of which eager says that it is an error.
bool lie_alike(const at::Tensor& to, const at::Tensor& from) {
  return !to.is_alias_of(from) && to.device() == from.device() && to.dtype() == from.dtype() &&
         to.sizes() == from.sizes() && to.strides() == from.strides() &&
         to.is_non_overlapping_and_dense() && to.is_conj() == from.is_conj() &&
         to.is_neg() == from.is_neg();
}

}  // namespace

bool copy_on_device(const at::Tensor& to, const at::Tensor& from) {
  const MirroredStorage* const source = mirrored(from.storage());
  if (!source || !mirrored(to.storage()) || !source->is_on_device() || !lie_alike(to, from))
    return false;
  if (to.numel() == 0) return true;
  DeviceAddresses addresses;
  void* const read = addresses.of(from, Access::kRead, "aten::copy_");
  void* const written = addresses.of(to, overwriting(to), "aten::copy_");
  offload_runtime().copy(to.device().index(), written, read, to.nbytes());
  return true;
}

}  // namespace torch_lazy
