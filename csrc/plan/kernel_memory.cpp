#include "plan/kernel_memory.h"

#include <map>
#include <utility>

namespace torch_lazy {

int64_t memory_of(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                  const BufferAssignment& assignment, ValueId id) {
  const ValueId root = assignment.root(id);
  const int32_t input = graph.values[size_t(root)].input;
  return input == kNoId ? root : -(int64_t(1) << 32) - inputs[size_t(input)].storage;
}

int64_t first_element_of(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                         const BufferAssignment& assignment, ValueId id) {
  const int32_t input = graph.values[size_t(assignment.root(id))].input;
  return input == kNoId ? 0 : inputs[size_t(input)].offset;
}

Layout region_of(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                 const BufferAssignment& assignment, ValueId id) {
  const ValueId base = graph.base_of(id);
  Layout own = assignment.layouts[size_t(base)];
  own.offset += first_element_of(graph, inputs, assignment, base);
  if (base == id) return own;
  // A view of an input counts from the start of its storage, others from the value's first element.
  Layout view = graph.nodes[size_t(graph.values[size_t(id)].producer)].layout;
  if (graph.values[size_t(base)].producer != kNoId) view.offset += own.offset;
  return view;
}

void mark_overlaps(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                   const BufferAssignment& assignment, codegen::LoweredKernel& kernel) {
  const auto memory = [&](const codegen::BufferBinding& binding) -> int64_t {
    return binding.value < 0 ? binding.value : memory_of(graph, inputs, assignment, binding.value);
  };
  std::map<int64_t, std::pair<size_t, bool>> uses;  // how many, and whether one is written
  for (const codegen::BufferBinding& binding : kernel.buffers) {
    auto& [count, written] = uses[memory(binding)];
    ++count;
    written |= binding.written;
  }
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const auto& [count, written] = uses[memory(kernel.buffers[i])];
    if (count > 1 && written) kernel.kernel.buffers[i].exclusive = false;
  }
}

}  // namespace torch_lazy
