// torch.nn.RNN, GRU and LSTM on packed sequences: the data of all sequences, the steps first, and
// how many sequences have each step. By cuDNN on CUDA; on the CPU as its composite, which
// multiplies what goes into a cell at once for all steps, as recurrent_modules.cpp does.
//
// The operators are those of ATen/native/RNN.cpp, in their order: test_operator_sequences.py
// compares. Whatever is wrong with the arguments is told by ATen's own.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/immortal_library.h"
#include "device/lazy_tensor.h"
#include "device/recurrent_cells.h"
#include "device/recurrent_modules.h"

namespace torch_lazy {
namespace {

using at::Tensor;
using at::TensorList;

// None where the composite has something to say of them.
std::optional<at::IntArrayRef> sizes_for(const Tensor& data, const Tensor& batch_sizes) {
  if (!is_lazy(data) || !batch_sizes.is_cpu() || batch_sizes.dim() != 1 ||
      batch_sizes.scalar_type() != at::kLong || !batch_sizes.is_contiguous())
    return std::nullopt;
  return at::IntArrayRef(batch_sizes.const_data_ptr<int64_t>(), size_t(batch_sizes.size(0)));
}

// Whether the CPU's composite can run: a row of data for each step of each sequence, no step with
// more sequences than the one before, and states for all sequences.
bool is_for_cpu(const Tensor& data, at::IntArrayRef sizes, TensorList hx, TensorList params,
                const RecurrentModule& module) {
  return is_for_cpu(data, 2, hx, params, module) && !sizes.empty() && sizes.back() > 0 &&
         std::is_sorted(sizes.rbegin(), sizes.rend()) &&
         std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == data.size(0) &&
         std::all_of(hx.begin(), hx.end(),
                     [&](const Tensor& state) { return state.size(1) == sizes.front(); });
}

// The states of some sequences. Here and below the cell's comes first, as in PyTorch's wheels,
// since gradients are accumulated in the order of the operators.
RecurrentState part_of(const RecurrentState& state, int64_t from, int64_t to) {
  RecurrentState part;
  if (state.c.defined()) part.c = state.c.narrow(0, from, to - from);
  part.h = state.h.narrow(0, from, to - from);
  return part;
}

RecurrentState together(const std::vector<RecurrentState>& parts) {
  std::vector<Tensor> h, c;
  for (const RecurrentState& part : parts) {
    h.push_back(part.h);
    if (part.c.defined()) c.push_back(part.c);
  }
  RecurrentState whole;
  if (!c.empty()) whole.c = at::cat(c, 0);
  whole.h = at::cat(h, 0);
  return whole;
}

// Sequences end: their states are put aside, the shortest ones last in the batch.
RecurrentLayer run_forward(RecurrentCell cell, const Tensor& input, at::IntArrayRef sizes,
                           RecurrentState state, const RecurrentWeights& weights) {
  const Tensor of_input = weights.of_input(input);
  std::vector<Tensor> steps;
  std::vector<RecurrentState> ended;
  int64_t row = 0, before = sizes.front();
  for (const int64_t size : sizes) {
    const Tensor step = of_input.narrow(0, row, size);
    row += size;
    if (size < before) {
      ended.push_back(part_of(state, size, before));
      state = part_of(state, 0, size);
    }
    before = size;
    state = cell(step, state, weights);
    steps.push_back(state.h);
  }
  ended.push_back(std::move(state));
  std::reverse(ended.begin(), ended.end());
  Tensor output = at::cat(steps, 0);
  return {std::move(output), together(ended)};
}

// Sequences begin: from the last step on, more and more of them.
RecurrentLayer run_backward(RecurrentCell cell, const Tensor& input, at::IntArrayRef sizes,
                            const RecurrentState& first, const RecurrentWeights& weights) {
  const Tensor of_input = weights.of_input(input);
  std::vector<Tensor> steps;
  int64_t row = input.size(0), before = sizes.back();
  RecurrentState state = part_of(first, 0, before);
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    if (*size > before) state = together({state, part_of(first, before, *size)});
    row -= *size;
    before = *size;
    state = cell(of_input.narrow(0, row, *size), state, weights);
    steps.push_back(state.h);
  }
  std::reverse(steps.begin(), steps.end());
  return {at::cat(steps, 0), std::move(state)};
}

RecurrentResults run_packed(RecurrentCell cell, const Tensor& data, at::IntArrayRef sizes,
                            const std::vector<RecurrentState>& states, TensorList params,
                            const RecurrentModule& module) {
  const auto run_layer = [&](const Tensor& input, const RecurrentState& state,
                             const RecurrentWeights& weights, bool reversed) {
    return reversed ? run_backward(cell, input, sizes, state, weights)
                    : run_forward(cell, input, sizes, state, weights);
  };
  return run_layers_in_turn(data, states, params, module, run_layer);
}

RecurrentResults run_packed_lstm(const Tensor& data, at::IntArrayRef sizes, TensorList hx,
                                 TensorList params, const RecurrentModule& module) {
  const bool of_one_length = sizes.front() == sizes.back();
  if (!of_one_length || projects(hx) || !onednn_takes(data.scalar_type()))
    return run_packed(lstm_cell, data, sizes, first_states(hx[0], hx[1]), params, module);
  const Tensor steps = data.view({int64_t(sizes.size()), sizes.front(), data.size(1)});
  RecurrentResults made = run_onednn(steps, hx, params, module);
  made.output = made.output.view({data.size(0), made.output.size(2)});
  return made;
}

template <RecurrentCell cell, CudnnCell cudnn_cell, auto composite>
std::tuple<Tensor, Tensor> packed_with_one_state(const Tensor& data, const Tensor& batch_sizes,
                                                 const Tensor& hx, TensorList params,
                                                 bool has_biases, int64_t layers, double dropout,
                                                 bool train, bool bidirectional) {
  const RecurrentModule module{has_biases, layers, dropout, train, bidirectional, false};
  if (const auto sizes = sizes_for(data, batch_sizes)) {
    if (auto made = run_cudnn(cudnn_cell, data, sizes, hx, params, module))
      return {std::move(made->output), std::move(made->h)};
    if (is_for_cpu(data, *sizes, hx, params, module)) {
      RecurrentResults made = run_packed(cell, data, *sizes, first_states(hx, {}), params, module);
      return {std::move(made.output), std::move(made.h)};
    }
  }
  return composite(data, batch_sizes, hx, params, has_biases, layers, dropout, train,
                   bidirectional);
}

std::tuple<Tensor, Tensor, Tensor> packed_lstm(const Tensor& data, const Tensor& batch_sizes,
                                               TensorList hx, TensorList params, bool has_biases,
                                               int64_t layers, double dropout, bool train,
                                               bool bidirectional) {
  const RecurrentModule module{has_biases, layers, dropout, train, bidirectional, false};
  if (const auto sizes = sizes_for(data, batch_sizes); sizes && hx.size() == 2) {
    if (auto made = run_cudnn(CudnnCell::kLstm, data, sizes, hx, params, module))
      return {std::move(made->output), std::move(made->h), std::move(made->c)};
    if (is_for_cpu(data, *sizes, hx, params, module)) {
      RecurrentResults made = run_packed_lstm(data, *sizes, hx, params, module);
      return {std::move(made.output), std::move(made.h), std::move(made.c)};
    }
  }
  return at::native::lstm(data, batch_sizes, hx, params, has_biases, layers, dropout, train,
                          bidirectional);
}

using Packed = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const Tensor&,
                                              TensorList, bool, int64_t, double, bool, bool);

}  // namespace

void register_packed_recurrent_modules() {
  constexpr Packed gru = at::native::gru, rnn_tanh = at::native::rnn_tanh,
                   rnn_relu = at::native::rnn_relu;
  for (const auto key : {c10::DispatchKey::Lazy, c10::DispatchKey::AutogradLazy}) {
    torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", key);
    aten.impl("gru.data", packed_with_one_state<gru_cell, CudnnCell::kGru, gru>);
    aten.impl("rnn_tanh.data", packed_with_one_state<tanh_cell, CudnnCell::kTanh, rnn_tanh>);
    aten.impl("rnn_relu.data", packed_with_one_state<relu_cell, CudnnCell::kRelu, rnn_relu>);
    aten.impl("lstm.data", packed_lstm);
  }
}

}  // namespace torch_lazy
