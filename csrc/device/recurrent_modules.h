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
// Whether the states of an LSTM are of different sizes, as a projection makes them.
bool projects(at::TensorList hx);
// Lazy tensors on the CPU: states for each cell, as many parameters as the module has, and input of
// so many dimensions.
bool is_for_cpu(const at::Tensor& input, int64_t dimensions, at::TensorList hx,
                at::TensorList params, const RecurrentModule& module);

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

// The LSTM by oneDNN, whose input has the steps first or is batch_first and whose output has the
// steps first, where the CPU takes it for this type. It projects nothing.
bool onednn_takes(c10::ScalarType dtype);
RecurrentResults run_onednn(const at::Tensor& input, at::TensorList hx, at::TensorList params,
                            const RecurrentModule& module);

// Kernels of cuDNN's operator and its gradient.
void register_cudnn_rnn();

// The modules on packed sequences.
void register_packed_recurrent_modules();

}  // namespace torch_lazy
