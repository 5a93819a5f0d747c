#include "codegen/batch.h"

#include <utility>

namespace torch_lazy::codegen {

std::string batch_key(const Kernel& kernel) {
  Kernel nameless = kernel;
  nameless.name = "kernel";
  nameless.comments.clear();
  for (size_t i = 0; i < nameless.buffers.size(); ++i)
    nameless.buffers[i].name = "b" + std::to_string(i);
  return to_string(nameless);
}

size_t argument_bytes(const LoweredKernel& kernel) {
  const size_t fields =
      kernel.buffers.size() + kernel.sizes.size() + kernel.numbers.size() + kernel.ends.size();
  return fields * sizeof(uint64_t);
}

LoweredKernel batch(const std::vector<LoweredKernel>& kernels) {
  LoweredKernel all = kernels.front();
  all.kernel.instances = static_cast<uint32_t>(kernels.size());
  all.ends = {all.work_items};
  for (size_t i = 1; i < kernels.size(); ++i) {
    const LoweredKernel& next = kernels[i];
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(all.buffers, next.buffers);
    append(all.sizes, next.sizes);
    append(all.numbers, next.numbers);
    all.work_items += next.work_items;
    all.ends.push_back(all.work_items);
  }
  return all;
}

}  // namespace torch_lazy::codegen
