#include "fake_cuda/kernel_work.h"

#include <algorithm>
#include <utility>

namespace torch_lazy::fake_cuda {
namespace {

// Whether the kernel has asked for what as many of its blocks have as fill a multiprocessor, 2,048
// threads, up to all that there is.
bool asks_for_its_share(const CUfunc_st& function, simt::Dim3 block, size_t dynamic_bytes) {
  const size_t bytes = simt::static_shared_bytes(*function.program, function.name) + dynamic_bytes;
  if (bytes == 0) return true;
  const size_t blocks = 2048 / (size_t(block.x) * block.y * block.z);
  const size_t wanted = std::min<size_t>(blocks * bytes, kMostSharedBytes);
  return size_t(std::max(function.shared_percent, 0)) * (228 << 10) >= wanted * 100;
}

}  // namespace

KernelWork::KernelWork(const CUfunc_st& function, simt::Dim3 grid, simt::Dim3 block,
                       unsigned shared_bytes, void** parameters)
    : program_(function.program),
      name_(function.name),
      grid_(grid),
      block_(block),
      shared_bytes_(shared_bytes),
      most_shared_bytes_(function.most_shared_bytes) {
  simt::validate({*program_, name_, grid_, block_, nullptr, shared_bytes_, most_shared_bytes_});
  if (!asks_for_its_share(function, block, shared_bytes))
    ++Device::get().launches_short_of_shared_memory;
  const simt::KernelEntry& kernel = program_->kernel(name_);
  for (int64_t i = 0; i < kernel.parameter_count; ++i) {
    const char* const begin = static_cast<const char*>(parameters[i]);
    values_.emplace_back(begin, begin + kernel.parameter_bytes[i]);
  }
}

void KernelWork::enqueue(CUstream_st& stream) const {
  Device::get().enqueue(stream, [work = *this]() mutable {
    std::vector<void*> addresses;
    for (std::vector<char>& value : work.values_) addresses.push_back(value.data());
    const simt::Report report = simt::run(
        Device::get().memory, {*work.program_, work.name_, work.grid_, work.block_,
                               addresses.data(), work.shared_bytes_, work.most_shared_bytes_});
    Device::get().take(work.name_, report);
  });
}

}  // namespace torch_lazy::fake_cuda
