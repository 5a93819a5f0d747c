// Recurrent modules by cuDNN without dropout, under names that stand on tapes and in graphs.
// PyTorch's own operator counts as random, since it may drop out; its gradient returns tensors and
// a list of them, and writes to what the forward pass has kept.
//
//   torch_lazy::cudnn_rnn(...): aten::_cudnn_rnn(...). The weights are copied into one buffer as
//     cuDNN lays them out, where PyTorch would do so too, but slower and with a warning: modules
//     have their weights in such a buffer on CUDA alone.
//   torch_lazy::cudnn_rnn_backward(...): aten::_cudnn_rnn_backward(...), all in one list
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace torch_lazy {

// cuDNN's own numbers.
enum class CudnnCell : int64_t { kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3 };

// What both operators are told beside tensors, as aten's are. Of a packed sequence there are sizes
// of batches.
struct CudnnRnn {
  int64_t mode;
  int64_t hidden_size;
  int64_t proj_size;  // 0 where nothing is projected
  int64_t num_layers;
  bool batch_first;
  bool train;
  bool bidirectional;
  std::vector<int64_t> batch_sizes;

  size_t cells() const { return size_t(num_layers) * (bidirectional ? 2 : 1); }
};

// Defines the operators and their CUDA kernels. Once a process, before they are called.
void register_cudnn_rnn_operator();

// Output, last hidden state, last cell state (no elements but of an LSTM), what the gradient needs
// where it is trained, and the buffer of weights.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> cudnn_rnn(
    const at::Tensor& input, at::TensorList weights, const at::Tensor& hx,
    const std::optional<at::Tensor>& cx, const CudnnRnn& rnn);

// What the forward pass has read and made.
struct CudnnRnnPast {
  at::Tensor input, weight_buffer, hx;
  std::optional<at::Tensor> cx;
  at::Tensor output, reserve;
};
// Of what it has returned; any but one may be missing.
struct CudnnRnnGradients {
  std::optional<at::Tensor> output, hy, cy;
};

// The gradients of the input, of the first hidden state and, in an LSTM, of the first cell state,
// followed by those of the weights if these are wanted.
std::vector<at::Tensor> cudnn_rnn_backward(const CudnnRnnPast& past,
                                           const CudnnRnnGradients& gradients, const CudnnRnn& rnn,
                                           bool has_biases, bool of_weights);

}  // namespace torch_lazy
