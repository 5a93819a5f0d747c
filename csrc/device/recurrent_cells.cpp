#include "device/recurrent_cells.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

namespace torch_lazy {

using at::Tensor;

RecurrentWeights::RecurrentWeights(at::TensorList params, bool has_biases, bool projects)
    : input(params[0]), hidden(params[1]) {
  if (has_biases) {
    input_bias = params[2];
    hidden_bias = params[3];
  }
  if (projects) projection = params.back();
}

RecurrentState tanh_cell(const Tensor& input, const RecurrentState& state,
                         const RecurrentWeights& weights) {
  return {at::tanh(weights.of_hidden(state.h).add_(input)), {}};
}

RecurrentState relu_cell(const Tensor& input, const RecurrentState& state,
                         const RecurrentWeights& weights) {
  return {at::relu(weights.of_hidden(state.h).add_(input)), {}};
}

RecurrentState gru_cell(const Tensor& input, const RecurrentState& state,
                        const RecurrentWeights& weights) {
  const std::vector<Tensor> of_input = input.unsafe_chunk(3, 1);
  const std::vector<Tensor> of_hidden = weights.of_hidden(state.h).unsafe_chunk(3, 1);
  const Tensor reset = of_hidden[0].add_(of_input[0]).sigmoid_();
  const Tensor update = of_hidden[1].add_(of_input[1]).sigmoid_();
  const Tensor fresh = of_input[2].add(of_hidden[2].mul_(reset)).tanh_();
  return {(state.h - fresh).mul_(update).add_(fresh), {}};
}

RecurrentState lstm_cell(const Tensor& input, const RecurrentState& state,
                         const RecurrentWeights& weights) {
  const std::vector<Tensor> gates = weights.of_hidden(state.h).add_(input).unsafe_chunk(4, 1);
  const Tensor in = gates[0].sigmoid_(), forget = gates[1].sigmoid_();
  const Tensor cell = gates[2].tanh_(), out = gates[3].sigmoid_();
  const Tensor c = (forget * state.c).add_(in * cell);
  const Tensor h = out * c.tanh();
  return {weights.projection.defined() ? at::matmul(h, weights.projection.t()) : h, c};
}

std::vector<RecurrentState> first_states(const Tensor& h, const Tensor& c) {
  std::vector<RecurrentState> states;
  for (Tensor& of_cell : h.unbind(0)) states.push_back({std::move(of_cell), {}});
  if (!c.defined()) return states;
  std::vector<Tensor> of_cells = c.unbind(0);
  for (size_t i = 0; i < states.size(); ++i) states[i].c = std::move(of_cells[i]);
  return states;
}

Tensor dropped_out(const Tensor& output, const RecurrentModule& module, int64_t layer) {
  if (module.dropout == 0 || !module.train || layer + 1 == module.layers) return output;
  return at::dropout(output, module.dropout, /*train=*/true);
}

RecurrentResults ResultsOfCells::stacked() const {
  return {output, at::stack(h, 0), c[0].defined() ? at::stack(c, 0) : Tensor()};
}

}  // namespace torch_lazy
