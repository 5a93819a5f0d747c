// as_strided, the one view of a core graph, said in operators that compilers of graphs know.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/layout.h"

namespace torch_lazy {

struct NamedView {
  enum class Kind : uint8_t {
    kPermute,  // aten::permute: `arguments` are the dimensions
    kReshape,  // aten::reshape: the sizes
    kSlice,    // aten::slice.Tensor: dimension, start, end, step
    kExpand,   // aten::expand: the sizes
  };
  Kind kind;
  std::vector<int64_t> arguments;
  std::vector<int64_t> sizes;  // of the result
};

// The operator's name and its overload's.
struct ViewOperator {
  const char *name, *overload;
};
ViewOperator operator_of(NamedView::Kind kind);
// What the operator is given after the tensor.
std::vector<c10::IValue> constants_of(const NamedView& view);

// The chain that makes the elements of `view` of those of `base`; empty where it is the base as it
// is. Both layouts are of one storage. The chain is about elements, not about memory: a reshape may
// be of something that is not contiguous. None where there is no such chain (windows that overlap,
// elements outside of the base, a base with gaps).
std::optional<std::vector<NamedView>> named_views(const Layout& base, const Layout& view);

}  // namespace torch_lazy
