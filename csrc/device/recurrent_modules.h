// What the ways to compute RNN, GRU and LSTM share.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "ops/cudnn_rnn_operator.h"

namespace torch_lazy {

// What a module says of itself in each call.
struct RecurrentModule {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train;
  bool bidirectional;
  bool batch_first;

  size_t directions() const { return bidirectional ? 2 : 1; }
  // Layers in one direction each.
  size_t cells() const { return size_t(layers) * directions(); }
};

bool are_lazy(at::TensorList tensors);

// The output, and the last states of all cells; `c` is an LSTM's alone.
struct RecurrentResults {
  at::Tensor output, h, c;
};

// The module by cuDNN; none where CUDA would not take cuDNN for it, or lazy tensors do not live
// there. `batch_sizes` are of a packed sequence.
std::optional<RecurrentResults> run_cudnn(CudnnCell cell, const at::Tensor& input,
                                          std::optional<at::IntArrayRef> batch_sizes,
                                          at::TensorList hx, at::TensorList params,
                                          const RecurrentModule& module);

// Kernels of cuDNN's operator and its gradient.
void register_cudnn_rnn();

// The modules on packed sequences.
void register_packed_recurrent_modules();

}  // namespace torch_lazy
