#include "fake_cuda/aten_twins.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <optional>
#include <utility>

#include "fake_cuda/aten_driver.h"

namespace torch_lazy::fake_cuda {
namespace {

constexpr c10::DispatchKeySet kIncluded{c10::DispatchKey::BackendSelect};
constexpr c10::DispatchKeySet kExcluded = c10::default_excluded_set |
                                          c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                          c10::autocast_dispatch_keyset | c10::python_ks;

at::Tensor twin(const at::Tensor& tensor, c10::Storage storage) {
  at::Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  twin.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  twin._set_conj(tensor.is_conj());
  twin._set_neg(tensor.is_neg());
  return twin;
}

c10::Storage storage_on_host(const c10::Storage& storage) {
  return {c10::Storage::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(storage.mutable_data(), c10::kCPU), c10::GetCPUAllocator(),
          /*resizable=*/true};
}

const char* first_byte(const at::Tensor& tensor) {
  return static_cast<const char*>(tensor.const_data_ptr());
}

// Of the dimensions from `dim` on.
void add_runs(const at::Tensor& tensor, int64_t dim, const char* begin, std::vector<Access>& runs) {
  const size_t item = tensor.itemsize();
  if (dim == tensor.dim()) return runs.push_back({device_address(begin), item});
  const int64_t size = tensor.size(dim), stride = tensor.stride(dim);
  if (dim == tensor.dim() - 1 && stride == 1) {
    return runs.push_back({device_address(begin), size_t(size) * item});
  }
  const int64_t different = stride == 0 ? 1 : size;
  for (int64_t i = 0; i < different; ++i) {
    add_runs(tensor, dim + 1, begin + i * stride * int64_t(item), runs);
  }
}

bool has_memory(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cuda() && tensor.numel() > 0;
}

void tell(const std::vector<Access>& accesses, bool writes) {
  for (const Access& access : accesses) {
    fake_cuda_access_from_host(access.begin, access.bytes, writes ? 1 : 0);
  }
}

}  // namespace

std::vector<at::Tensor> on_host(at::TensorList tensors) {
  std::vector<at::Tensor> twins;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cuda()) {
      twins.push_back(tensor);
      continue;
    }
    std::optional<at::Tensor> same;
    std::optional<c10::Storage> shared;
    for (size_t i = 0; i < twins.size(); ++i) {
      if (tensors[i].is_same(tensor)) same = twins[i];
      if (tensors[i].is_alias_of(tensor)) shared = twins[i].storage();
    }
    if (!shared) shared = storage_on_host(tensor.storage());
    twins.push_back(same ? *same : twin(tensor, *shared));
  }
  return twins;
}

std::vector<Access> reads_of(const at::Tensor& tensor) {
  if (!has_memory(tensor)) return {};
  int64_t last = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    last += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return {{device_address(first_byte(tensor)), size_t(last + 1) * tensor.itemsize()}};
}

std::vector<Access> writes_of(const at::Tensor& tensor) {
  if (!has_memory(tensor)) return {};
  if (tensor.is_non_overlapping_and_dense()) return reads_of(tensor);
  std::vector<Access> runs;
  add_runs(tensor, 0, first_byte(tensor), runs);
  return runs;
}

void tell_reads(const std::vector<Access>& accesses) {
  tell(accesses, false);
}

void tell_writes(const std::vector<Access>& accesses) {
  tell(accesses, true);
}

void enqueue(std::function<void()> work) {
  ensure_context();
  auto owned = std::make_unique<std::function<void()>>(std::move(work));
  const auto run = [](void* data) {
    const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(data));
    const c10::impl::ForceDispatchKeyGuard plain(kIncluded, kExcluded);
    (*work)();
  };
  check(cuLaunchHostFunc(current_stream(), run, owned.get()));
  owned.release();
}

}  // namespace torch_lazy::fake_cuda
