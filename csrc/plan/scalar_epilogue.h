// What a kernel computes after its reductions, element by element.
#pragma once

#include "passes/fusion_group.h"

namespace torch_lazy {

// In a kernel whose lanes run along what it reduces, what follows the reductions is computed with
// scalars, one point of the result after the other: a softmax's logarithm, an activation behind a
// product with a matrix of few columns. The first of the group's last nodes that are all of this
// kind, where they cost more so than in a kernel of their own, in vectors of `lanes`; kNoId
// where they do not.
NodeId costly_scalar_epilogue(const CoreGraph& graph, const FusionGroup& group, int lanes);

}  // namespace torch_lazy
