#include "ops/rnn_layer_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include "base/immortal_library.h"

namespace torch_lazy {
namespace {

using at::Tensor;
using LayerResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;

LayerResults in_grad_mode(bool grad_mode, const Tensor& input, const Tensor& weight0,
                          const Tensor& weight1, const Tensor& weight2, const Tensor& weight3,
                          const Tensor& hx, const Tensor& cx, bool reverse,
                          at::IntArrayRef batch_sizes, int64_t mode, int64_t hidden_size,
                          int64_t num_layers, bool has_biases, bool bidirectional, bool batch_first,
                          bool train) {
  const c10::AutoGradMode as_recorded(grad_mode);
  return at::mkldnn_rnn_layer(input, weight0, weight1, weight2, weight3, hx, cx, reverse,
                              batch_sizes, mode, hidden_size, num_layers, has_biases, bidirectional,
                              batch_first, train);
}

}  // namespace

void register_rnn_layer_operator() {
  immortal_library(torch::Library::FRAGMENT, "torch_lazy", std::nullopt)
      .def(
          "rnn_layer(bool grad_mode, Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, "
          "Tensor weight3, Tensor hx, Tensor cx, bool reverse, int[] batch_sizes, int mode, "
          "int hidden_size, int num_layers, bool has_biases, bool bidirectional, "
          "bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)");
  immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CPU)
      .impl("rnn_layer", in_grad_mode);
}

LayerResults rnn_layer(const Tensor& input, const Tensor& weight0, const Tensor& weight1,
                       const Tensor& weight2, const Tensor& weight3, const Tensor& hx,
                       const Tensor& cx, bool reverse, at::IntArrayRef batch_sizes, int64_t mode,
                       int64_t hidden_size, int64_t num_layers, bool has_biases, bool bidirectional,
                       bool batch_first, bool train) {
  static const auto layer = c10::Dispatcher::singleton()
                                .findSchemaOrThrow("torch_lazy::rnn_layer", "")
                                .typed<decltype(in_grad_mode)>();
  return layer.call(c10::GradMode::is_enabled(), input, weight0, weight1, weight2, weight3, hx, cx,
                    reverse, batch_sizes, mode, hidden_size, num_layers, has_biases, bidirectional,
                    batch_first, train);
}

}  // namespace torch_lazy
