// Random numbers that kernels draw by key (ops/philox_operators.h).
#pragma once

namespace torch_lazy {

// Whether the execution device draws Bernoulli numbers by key, if the setting `rng` says so: by a
// kernel of its own, or by what it does with every operator that it has none for.
bool draws_bernoulli_by_key();

}  // namespace torch_lazy
