#include "plan/kernel_bytes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/loop_analysis.h"

namespace torch_lazy {
namespace {

using codegen::Dimensions;
using codegen::Kernel;
using codegen::LoweredKernel;

// The elements of one buffer that are loaded, or those that are stored.
struct Touched {
  int64_t elements = 0;  // of all accesses together
  int64_t begin = INT64_MAX, end = INT64_MIN;
  bool indirect = false;  // where the elements lie is known in the run only

  int64_t count() const { return indirect ? elements : std::min(elements, end - begin); }
};

class Counter {
 public:
  explicit Counter(const LoweredKernel& lowered)
      : lowered_(lowered), varying_(codegen::varying_dimensions(lowered.kernel)) {}

  int64_t bytes() {
    const Kernel& kernel = lowered_.kernel;
    for (const codegen::Expr& expr : kernel.exprs)
      if (expr.op == codegen::Op::kLoad) add(loaded_[expr.buffer], expr.access);
    for (const codegen::Store& store : kernel.stores) add(stored_[store.buffer], store.access);
    int64_t bytes = 0;
    for (const auto* all : {&loaded_, &stored_})
      for (const auto& [buffer, touched] : *all)
        bytes += touched.count() * codegen::bytes_of(kernel.buffers[buffer].type);
    return bytes;
  }

 private:
  int64_t extent(size_t dimension) const {
    const Kernel& kernel = lowered_.kernel;
    if (dimension < kernel.parallel.size()) return lowered_.number(kernel.parallel[dimension]);
    const size_t reduction = dimension - kernel.parallel.size();
    // A reduction in chunks runs over all of them; see Kernel::reduction_total.
    const int64_t total = reduction == 0 ? lowered_.number(kernel.reduction_total) : 0;
    return total > 0 ? total : lowered_.number(kernel.reduction[reduction]);
  }

  void add(Touched& touched, const codegen::Access& access) const {
    const Dimensions varies = codegen::varying_dimensions(access, varying_);
    int64_t elements = 1, begin = lowered_.number(access.offset), end = begin + 1;
    for (size_t i = 0; i < access.strides.size(); ++i) {
      if (!(varies & codegen::dimension_bit(i))) continue;
      elements *= extent(i);
      const int64_t reach = (extent(i) - 1) * lowered_.number(access.strides[i]);
      (reach < 0 ? begin : end) += reach;
    }
    touched.elements += elements;
    touched.begin = std::min(touched.begin, begin);
    touched.end = std::max(touched.end, end);
    touched.indirect |= !access.indirect.empty();
  }

  const LoweredKernel& lowered_;
  const std::vector<Dimensions> varying_;  // by expression
  std::map<uint32_t, Touched> loaded_, stored_;
};

}  // namespace

int64_t bytes_moved(const LoweredKernel& lowered) {
  return Counter(lowered).bytes();
}

}  // namespace torch_lazy
