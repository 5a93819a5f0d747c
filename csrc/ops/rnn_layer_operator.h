// A layer of a recurrent module by oneDNN, under the name that stands on tapes and in graphs. The
// kernel of `aten::mkldnn_rnn_layer` asks the thread whether gradients are wanted, and returns what
// the backward pass needs only then: here the caller says it, who may be gone when the window runs.
//
//   torch_lazy::rnn_layer(grad_mode, ...): aten::mkldnn_rnn_layer(...), with that grad mode
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

namespace torch_lazy {

// Defines the operator and its CPU kernel. Once a process, before it is called.
void register_rnn_layer_operator();

// The operator with the thread's grad mode; the arguments of aten::mkldnn_rnn_layer.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> rnn_layer(
    const at::Tensor& input, const at::Tensor& weight0, const at::Tensor& weight1,
    const at::Tensor& weight2, const at::Tensor& weight3, const at::Tensor& hx,
    const at::Tensor& cx, bool reverse, at::IntArrayRef batch_sizes, int64_t mode,
    int64_t hidden_size, int64_t num_layers, bool has_biases, bool bidirectional, bool batch_first,
    bool train);

}  // namespace torch_lazy
