// How a view steps along the dimensions of the dense tensor that it shows part of.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <optional>

#include "passes/layout.h"

namespace torch_lazy {

struct ViewSteps {
  // What one dimension of the view does: along which of the tensor's, and by how many elements of
  // it. One that does not move, because it has one element or is broadcast, is by 0.
  struct Along {
    size_t dim = 0;
    int64_t by = 0;
    bool operator==(const Along&) const = default;
  };
  c10::SmallVector<int64_t, 5> begin;  // the index in the tensor of the view's first element
  c10::SmallVector<Along, 5> along;    // by dimension of the view
};

// The view's offset counts from the tensor's first element. None where the tensor is not dense, the
// view empty, or where a dimension of it runs along none or several of the tensor's, or, together
// with others, leaves one.
std::optional<ViewSteps> steps_of(const Layout& view, c10::IntArrayRef sizes,
                                  c10::IntArrayRef strides);

// Whether the view is a box of the tensor, dimension by dimension: it begins somewhere, and goes on
// by single elements. Returns where.
std::optional<c10::SmallVector<int64_t, 5>> begin_of_box(const Layout& view, c10::IntArrayRef sizes,
                                                         c10::IntArrayRef strides);

}  // namespace torch_lazy
