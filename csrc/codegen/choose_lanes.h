// Along which axis of a draft the vector lanes run.
#pragma once

#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

struct Lanes {
  Axis axis;
  bool unrolled = false;  // the extents of the reduction axes are constants of the source
};

// Chooses by an estimate of the vector operations of a run, and puts the axes in the kernel's
// order. Without a reason lanes run where most of the memory is read and written in a row. They may
// run along any axis that is reduced, which becomes the last one; and along a parallel axis where
// those inside of it are short: it becomes the last parallel axis and the short ones, unless the
// draft reduces others, become reduction axes along which each work item steps (`reduced`, though
// nothing is reduced). Expects the axes in order_and_merge_axes' order.
Lanes choose_lanes(Draft& draft, int lanes);

// The choice without an estimate, whose unit is a CPU's vector instruction.
Lanes usual_lanes(const Draft& draft);

}  // namespace torch_lazy::codegen
