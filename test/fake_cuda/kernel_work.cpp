#include "fake_cuda/kernel_work.h"

#include <utility>

namespace torch_lazy::fake_cuda {

KernelWork::KernelWork(const CUfunc_st& function, simt::Dim3 grid, simt::Dim3 block,
                       unsigned shared_bytes, void** parameters)
    : program_(function.program),
      name_(function.name),
      grid_(grid),
      block_(block),
      shared_bytes_(shared_bytes),
      most_shared_bytes_(function.most_shared_bytes) {
  simt::validate({*program_, name_, grid_, block_, nullptr, shared_bytes_, most_shared_bytes_});
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
