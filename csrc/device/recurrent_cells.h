// RNN, GRU and LSTM step by step: the cells, and the layers of a module.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>

#include <utility>
#include <vector>

#include "device/recurrent_modules.h"

namespace torch_lazy {

// The parameters of a layer in one direction.
struct RecurrentWeights {
  at::Tensor input, hidden, input_bias, hidden_bias, projection;

  RecurrentWeights(at::TensorList params, bool has_biases, bool projects);
  // What goes into a cell of the input, of one step or of all.
  at::Tensor of_input(const at::Tensor& x) const { return at::linear(x, input, input_bias); }
  at::Tensor of_hidden(const at::Tensor& h) const { return at::linear(h, hidden, hidden_bias); }
};

// `c` is an LSTM's alone.
struct RecurrentState {
  at::Tensor h, c;
};

// The state after a step, of RecurrentWeights::of_input() of the step's input.
using RecurrentCell = RecurrentState (*)(const at::Tensor& input, const RecurrentState& state,
                                         const RecurrentWeights& weights);

RecurrentState tanh_cell(const at::Tensor& input, const RecurrentState& state,
                         const RecurrentWeights& weights);
RecurrentState relu_cell(const at::Tensor& input, const RecurrentState& state,
                         const RecurrentWeights& weights);
RecurrentState gru_cell(const at::Tensor& input, const RecurrentState& state,
                        const RecurrentWeights& weights);
RecurrentState lstm_cell(const at::Tensor& input, const RecurrentState& state,
                         const RecurrentWeights& weights);

// A layer in one direction: what it makes of each step, and its last state.
using RecurrentLayer = std::pair<at::Tensor, RecurrentState>;

// The states that a module begins with, by layer and direction. `c` is undefined but in an LSTM.
std::vector<RecurrentState> first_states(const at::Tensor& h, const at::Tensor& c);

// What one layer makes is the next one's input.
at::Tensor dropped_out(const at::Tensor& output, const RecurrentModule& module, int64_t layer);

// Of a module with one layer at least.
struct ResultsOfCells {
  at::Tensor output;
  std::vector<at::Tensor> h, c;  // by layer and direction

  RecurrentResults stacked() const;
};

// Layer after layer, each in its directions. `run_layer` takes the input, the first state, the
// weights and whether it is to go backwards.
template <class RunLayer>
RecurrentResults run_layers_in_turn(at::Tensor input, const std::vector<RecurrentState>& states,
                                    at::TensorList params, const RecurrentModule& module,
                                    const RunLayer& run_layer) {
  ResultsOfCells outputs{std::move(input), {}, {}};
  const size_t stride = params.size() / states.size();
  const bool projects = stride % 2 != 0;
  size_t index = 0;
  for (int64_t layer = 0; layer < module.layers; ++layer) {
    std::vector<at::Tensor> by_direction;
    for (size_t direction = 0; direction < module.directions(); ++direction, ++index) {
      const RecurrentWeights weights(params.slice(index * stride, stride), module.has_biases,
                                     projects);
      RecurrentLayer made = run_layer(outputs.output, states[index], weights, direction > 0);
      by_direction.push_back(std::move(made.first));
      outputs.h.push_back(std::move(made.second.h));
      outputs.c.push_back(std::move(made.second.c));
    }
    const at::Tensor& first = by_direction[0];
    outputs.output = module.bidirectional ? at::cat(by_direction, first.dim() - 1) : first;
    outputs.output = dropped_out(outputs.output, module, layer);
  }
  return outputs.stacked();
}

}  // namespace torch_lazy
