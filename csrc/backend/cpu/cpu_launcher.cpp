#include "backend/cpu/cpu_launcher.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>

#include "backend/cpu/onednn_products.h"
#include "ops/indices_within.h"

namespace torch_lazy {
namespace {

// A parallel loop hands out work of at least as many simple operations, as ATen's loops do.
constexpr double kGrain = 32768;

}  // namespace

at::Tensor CpuLauncher::empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                              c10::ScalarType dtype) const {
  return at::detail::empty_strided_cpu(sizes, strides, dtype);
}

int64_t CpuLauncher::trials() const {
  return products_on_trial();
}

bool CpuLauncher::all_within(const at::Tensor& indices, int64_t limit) const {
  return indices_within(indices, {0, limit, std::nullopt});
}

void CpuLauncher::launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const {
  const CpuKernel& kernel = kernels_[step.index];
  const KernelFunction function = kernel.code->function;
  const codegen::LoweredKernel& lowered = step.lowered;
  const int64_t* sizes = lowered.sizes.data();
  const double* numbers = lowered.numbers.data();
  const auto grain = int64_t(std::max(1.0, kGrain / std::max(1.0, lowered.work_item_cost)));
  const int64_t scratch_bytes = kernel.scratch_bytes;
  if (scratch_bytes == 0 && lowered.work_items <= grain) {
    function(pointers.data(), sizes, numbers, 0, lowered.work_items);
    return;
  }
  at::parallel_for(0, lowered.work_items, grain, [&](int64_t begin, int64_t end) {
    if (scratch_bytes == 0) {
      function(pointers.data(), sizes, numbers, begin, end);
      return;
    }
    const c10::DataPtr scratch = c10::GetCPUAllocator()->allocate(size_t(scratch_bytes));
    c10::SmallVector<void*, 16> own(pointers.begin(), pointers.end());
    own.push_back(scratch.get());
    function(own.data(), sizes, numbers, begin, end);
  });
}

}  // namespace torch_lazy
