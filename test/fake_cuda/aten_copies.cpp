// Copies and fills, where PyTorch's own `copy_` and `fill_` ask for CUDA's: in the order of the
// current stream, and done when someone waits for it.

#include <ATen/EmptyTensor.h>
#include <ATen/native/Copy.h>
#include <ATen/native/Fill.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fill_ops.h>

#include "fake_cuda/aten_driver.h"
#include "fake_cuda/aten_memory.h"
#include "fake_cuda/aten_twins.h"

namespace torch_lazy::fake_cuda {
namespace {

constexpr c10::DispatchKeySet kOnHost{c10::DispatchKey::CPU};

// One run of bytes into another: the copy engine's.
bool is_plain(const at::Tensor& to, const at::Tensor& from) {
  const bool same_order = to.strides() == from.strides() && to.is_non_overlapping_and_dense();
  return to.dtype() == from.dtype() && to.sizes() == from.sizes() &&
         (same_order || (to.is_contiguous() && from.is_contiguous()));
}

bool same_bits(const at::Tensor& to, const at::Tensor& from) {
  return to.is_conj() == from.is_conj() && to.is_neg() == from.is_neg();
}

// Whether a tensor of the CPU is pinned, whose memory then waits for the current stream.
void keep_for_stream(const at::Tensor& on_host) {
  const auto& memory = on_host.storage().data_ptr();
  host_allocator().record_event(memory.get(), memory.get_context(),
                                c10::Stream(c10::Stream::UNSAFE, checked_device(0),
                                            reinterpret_cast<c10::StreamId>(current_stream())));
}

void copy_plainly(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  void* const target = to.mutable_data_ptr();
  const void* const source = from.const_data_ptr();
  const size_t bytes = to.nbytes();
  if (to.is_cuda() && from.is_cuda()) {
    check(cuMemcpyDtoDAsync_v2(device_address(target), device_address(source), bytes,
                               current_stream()));
    return;
  }
  if (to.is_cuda()) {
    check(cuMemcpyHtoDAsync_v2(device_address(target), source, bytes, current_stream()));
  } else {
    check(cuMemcpyDtoHAsync_v2(target, device_address(source), bytes, current_stream()));
  }
  keep_for_stream(to.is_cuda() ? from : to);
  if (!non_blocking) check(cuStreamSynchronize(current_stream()));
}

void copy_on_device(const at::Tensor& to, const at::Tensor& from) {
  enqueue([twins = on_host({to, from}), reads = reads_of(from), writes = writes_of(to)]() mutable {
    tell_reads(reads);
    tell_writes(writes);
    at::_ops::copy_::redispatch(kOnHost, twins[0], twins[1], false);
  });
}

// Between host and device move runs of bytes only; dtypes change on the device where the copy is
// not waited for, as in PyTorch.
void copy_by_temporaries(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const bool convert_first = to.is_cuda() || non_blocking;
  const auto dtype = convert_first ? to.scalar_type() : from.scalar_type();
  at::Tensor target =
      to.is_contiguous() && to.scalar_type() == dtype
          ? to
          : at::empty_like(to, to.options().dtype(dtype), at::MemoryFormat::Contiguous);
  const at::Tensor source = from.to(dtype).expand_as(to).contiguous();
  target.copy_(source, non_blocking);
  if (!target.is_same(to)) to.copy_(target, non_blocking);
}

void copy(at::TensorIterator& iterator, bool non_blocking) {
  const at::Tensor &to = iterator.tensor(0), &from = iterator.tensor(1);
  ensure_context();
  if (to.is_cuda() && from.is_cuda()) {
    return is_plain(to, from) && same_bits(to, from) ? copy_plainly(to, from, non_blocking)
                                                     : copy_on_device(to, from);
  }
  if (!is_plain(to, from)) return copy_by_temporaries(to, from, non_blocking);
  copy_plainly(to, from, non_blocking && same_bits(to, from));
  if (to.is_conj() != from.is_conj()) to.conj_physical_();
  if (to.is_neg() != from.is_neg()) to.neg_();
}

void fill(at::TensorIterator& iterator, const c10::Scalar& value) {
  const at::Tensor& to = iterator.tensor(0);
  at::Tensor one = at::detail::empty_cpu({}, to.scalar_type());
  at::_ops::fill__Scalar::redispatch(kOnHost, one, value);  // raises what the CPU raises
  enqueue([twins = on_host(to), writes = writes_of(to), value]() mutable {
    tell_writes(writes);
    at::_ops::fill__Scalar::redispatch(kOnHost, twins[0], value);
  });
}

}  // namespace
}  // namespace torch_lazy::fake_cuda

namespace at::native {
REGISTER_CUDA_DISPATCH(copy_stub, &torch_lazy::fake_cuda::copy)
REGISTER_CUDA_DISPATCH(fill_stub, &torch_lazy::fake_cuda::fill)
}  // namespace at::native
