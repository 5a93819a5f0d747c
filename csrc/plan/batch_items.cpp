#include "plan/batch_items.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "codegen/batch.h"
#include "plan/kernel_bytes.h"
#include "plan/kernel_memory.h"

namespace torch_lazy {
namespace {

using codegen::BufferBinding;
using codegen::LoweredKernel;

// A kernel that moves more takes longer to run than to launch.
constexpr int64_t kMostMovedBytes = 4 << 20;
// How many lists back a kernel looks for others of its kind.
constexpr size_t kMostListsBack = 256;

class Batcher {
 public:
  Batcher(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
          const LoweredItems& lowered, size_t most_bytes)
      : graph_(graph), inputs_(inputs), lowered_(lowered), most_bytes_(most_bytes) {}

  std::vector<std::vector<size_t>> run() {
    for (size_t i = 0; i < lowered_.items.size(); ++i) add(i);
    std::vector<std::vector<size_t>> result;
    for (List& list : lists_) result.push_back(std::move(list.items));
    return result;
  }

 private:
  // What values are in, by memory (memory_of). Kernels that fill pieces of a cat have one memory
  // and nothing to do with each other.
  struct Part {
    Layout region;
    at::ScalarType dtype;
  };
  using Parts = std::unordered_map<int64_t, std::vector<Part>>;

  struct List {
    std::vector<size_t> items;
    std::string key;     // of kernels that are launched together; empty: of what runs by itself
    size_t bytes = 0;    // of arguments
    bool fixed = false;  // nothing moves past it
    Parts read, written;
  };

  // With the latest list that has its kind, as long as nothing it would pass by has to do with it.
  void add(size_t index) {
    List own = list_of(index);
    const size_t last = lists_.size() - std::min(lists_.size(), kMostListsBack);
    for (size_t at = lists_.size(); !own.key.empty() && at-- > last;) {
      List& list = lists_[at];
      if (list.fixed || depend(list, own)) break;
      if (list.key != own.key || list.bytes + own.bytes > most_bytes_) continue;
      list.items.push_back(index);
      list.bytes += own.bytes;
      add_parts(list.read, std::move(own.read));
      add_parts(list.written, std::move(own.written));
      return;
    }
    lists_.push_back(std::move(own));
  }

  List list_of(size_t index) const {
    const LoweredItem& item = lowered_.items[index];
    List list;
    list.items = {index};
    if (most_bytes_ == 0) return list;
    list.fixed = !is_done_already(item) && can_fail(item);
    for (const LoweredKernel& kernel : item.kernels) {
      for (const BufferBinding& binding : kernel.buffers) {
        if (binding.value < 0) continue;
        const BufferAssignment& assignment = lowered_.buffer_assignment;
        (binding.written ? list.written
                         : list.read)[memory_of(graph_, inputs_, assignment, binding.value)]
            .push_back({region_of(graph_, inputs_, assignment, binding.value),
                        graph_.values[size_t(binding.value)].dtype});
      }
    }
    if (list.fixed || item.kernels.size() != 1) return list;
    const LoweredKernel& kernel = item.kernels.front();
    if (bytes_moved(kernel) > kMostMovedBytes || kernel.work_items == 0) return list;
    list.key = codegen::batch_key(kernel.kernel);
    list.bytes = codegen::argument_bytes(kernel) + sizeof(int64_t);  // where it ends
    return list;
  }

  // What fails on data fails before inputs are written.
  bool can_fail(const LoweredItem& item) const {
    const auto* const group = std::get_if<FusionGroup>(&item.item);
    return group == nullptr || torch_lazy::can_fail(graph_, *group);
  }

  // A partial write whose source a kernel makes in its place.
  bool is_done_already(const LoweredItem& item) const {
    const auto* const id = std::get_if<NodeId>(&item.item);
    return id && lowered_.buffer_assignment.written_early.count(*id) > 0;
  }

  static void add_parts(Parts& to, Parts&& parts) {
    for (auto& [memory, own] : parts) {
      std::vector<Part>& known = to[memory];
      std::move(own.begin(), own.end(), std::back_inserter(known));
    }
  }

  static bool meet(const Parts& all, const Parts& few) {
    return std::ranges::any_of(few, [&](const auto& entry) {
      const auto found = all.find(entry.first);
      if (found == all.end()) return false;
      for (const Part& one : entry.second)
        for (const Part& other : found->second)
          if (one.dtype != other.dtype || !disjoint(one.region, other.region)) return true;
      return false;
    });
  }

  static bool depend(const List& earlier, const List& later) {
    return meet(earlier.written, later.read) || meet(earlier.written, later.written) ||
           meet(earlier.read, later.written);
  }

  const CoreGraph& graph_;
  const std::vector<GraphInput>& inputs_;
  const LoweredItems& lowered_;
  const size_t most_bytes_;
  std::vector<List> lists_;
};

}  // namespace

std::vector<std::vector<size_t>> batch_items(const CoreGraph& graph,
                                             const std::vector<GraphInput>& inputs,
                                             const LoweredItems& lowered, size_t most_bytes) {
  return Batcher(graph, inputs, lowered, most_bytes).run();
}

std::vector<KernelStep> batches_of(std::vector<KernelStep> steps) {
  // The longest first: it says how many threads a work item has.
  std::stable_sort(steps.begin(), steps.end(), [](const KernelStep& a, const KernelStep& b) {
    return a.lowered.work_items > b.lowered.work_items;
  });
  std::vector<KernelStep> batches;
  std::vector<std::vector<LoweredKernel>> kernels;  // of each
  std::unordered_map<std::string, size_t> batch_of;
  for (KernelStep& step : steps) {
    const auto [found, made] =
        batch_of.emplace(codegen::batch_key(step.lowered.kernel), batches.size());
    if (made) {
      kernels.push_back({step.lowered});
      batches.push_back(std::move(step));
      continue;
    }
    KernelStep& batch = batches[found->second];
    kernels[found->second].push_back(std::move(step.lowered));
    batch.pointers.insert(batch.pointers.end(), step.pointers.begin(), step.pointers.end());
    batch.bytes += step.bytes;
  }
  for (size_t i = 0; i < batches.size(); ++i)
    if (kernels[i].size() > 1) batches[i].lowered = codegen::batch(kernels[i]);
  return batches;
}

}  // namespace torch_lazy
