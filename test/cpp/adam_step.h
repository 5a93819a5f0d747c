// An optimizer's step on a tape.
#pragma once

#include "tape_builder.h"

namespace torch_lazy::tests {

// The step of Adam for a parameter, as torch.optim records it where it has no list of tensors.
inline void step_of_adam(TapeBuilder& w, int64_t size) {
  const Handle parameter = w.input(at::randn({size})), gradient = w.input(at::randn({size}));
  const Handle mean = w.input(at::randn({size})), square = w.input(at::rand({size}));
  w.call("aten::lerp_", "Scalar", {mean, gradient, 0.1});
  w.call("aten::mul_", "Tensor", {square, number(0.999)});
  w.call("aten::addcmul_", "", {square, gradient, gradient, 0.001});
  const Handle root = w.call("aten::sqrt", "", {square})[0];
  const Handle scaled = w.call("aten::div", "Tensor", {root, number(0.03)})[0];
  w.call("aten::add_", "Tensor", {scaled, number(1e-8), 1});
  w.call("aten::addcdiv_", "", {parameter, mean, scaled, -0.01});
}

}  // namespace torch_lazy::tests
