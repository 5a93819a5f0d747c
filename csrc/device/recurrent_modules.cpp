// torch.nn.RNN, GRU and LSTM as the CPU has them, whose composites ask whether tensors are the
// CPU's: what goes into a cell is one product for all steps, and a layer of an LSTM is one
// operator, oneDNN's, and not a dozen for each step. Where lazy tensors live on CUDA they are
// cuDNN's (recurrent_modules_cudnn.cpp). Packed sequences: recurrent_modules_packed.cpp.
//
// The operators are those of ATen/native/RNN.cpp and ATen/native/mkldnn/RNN.cpp, in their order:
// test_operator_sequences.py compares. Whatever is wrong with the arguments is told by ATen's own.
#include "device/recurrent_modules.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/immortal_library.h"
#include "device/lazy_tensor.h"
#include "device/recurrent_cells.h"
#include "device/register.h"
#include "ops/rnn_layer_operator.h"

namespace torch_lazy {

bool are_lazy(at::TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return is_lazy(tensor); });
}

bool projects(at::TensorList hx) {
  return hx.size() == 2 && hx[0].dim() == 3 && hx[1].dim() == 3 &&
         hx[0].sym_size(2) != hx[1].sym_size(2);
}

bool is_for_cpu(const at::Tensor& input, int64_t dimensions, at::TensorList hx,
                at::TensorList params, const RecurrentModule& module) {
  const size_t params_of_cell = (module.has_biases ? 4 : 2) + size_t(projects(hx));
  return module.layers > 0 && lazy_impl(input) && are_lazy(hx) && are_lazy(params) &&
         execution_device().is_cpu() && input.dim() == dimensions && input.numel() != 0 &&
         params.size() == params_of_cell * module.cells() &&
         std::all_of(hx.begin(), hx.end(), [&](const at::Tensor& state) {
           return state.dim() == 3 && state.size(0) == int64_t(module.cells());
         });
}

namespace {

using at::Tensor;
using at::TensorList;

// The input with the steps first.
Tensor by_steps(const Tensor& input, const RecurrentModule& module) {
  return module.batch_first ? input.transpose(0, 1) : input;
}

RecurrentResults run_steps(RecurrentCell cell, Tensor input_by_steps,
                           const std::vector<RecurrentState>& states, TensorList params,
                           const RecurrentModule& module) {
  const auto run_layer = [cell](const Tensor& input, RecurrentState state,
                                const RecurrentWeights& weights, bool reversed) -> RecurrentLayer {
    std::vector<Tensor> steps = weights.of_input(input).unbind(0);
    if (reversed) std::reverse(steps.begin(), steps.end());
    for (Tensor& step : steps) {
      state = cell(step, state, weights);
      step = state.h;
    }
    if (reversed) std::reverse(steps.begin(), steps.end());
    return {at::stack(steps, 0), std::move(state)};
  };
  return run_layers_in_turn(std::move(input_by_steps), states, params, module, run_layer);
}

// ---------------------------------------------------------------- LSTM by oneDNN

constexpr int64_t kLstm = 2;  // what oneDNN's operator calls this kind of cell

// Whether oneDNN computes in a type of 16 bits on this machine; `name` of PyTorch's own check.
bool onednn_supports(const char* name) {
  const auto check = c10::Dispatcher::singleton().findSchema({name, ""});
  return check && check->typed<bool()>().call();
}

}  // namespace

bool onednn_takes(c10::ScalarType dtype) {
  if (!at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return false;
  if (dtype == at::kBFloat16) {
    static const bool supported = onednn_supports("mkldnn::_is_mkldnn_bf16_supported");
    return supported;
  }
  if (dtype == at::kHalf && !c10::GradMode::is_enabled()) {
    static const bool supported = onednn_supports("mkldnn::_is_mkldnn_fp16_supported");
    return supported;
  }
  return dtype == at::kFloat;
}

RecurrentResults run_onednn(const Tensor& input, TensorList hx, TensorList params,
                            const RecurrentModule& module) {
  ResultsOfCells outputs{by_steps(input, module).contiguous(), {}, {}};
  const Tensor h = hx[0].contiguous(), c = hx[1].contiguous();
  const size_t stride = params.size() / module.cells();
  int64_t index = 0;
  for (int64_t layer = 0; layer < module.layers; ++layer) {
    std::vector<Tensor> by_direction;
    for (size_t direction = 0; direction < module.directions(); ++direction, ++index) {
      const TensorList weights = params.slice(size_t(index) * stride, stride);
      const auto bias = [&](size_t i) {
        return module.has_biases ? weights[i + 2]
                                 : at::zeros(weights[i].sizes(), weights[i].options());
      };
      const Tensor h_before = h[index], c_before = c[index];
      const Tensor bias_of_input = bias(0), bias_of_hidden = bias(1);
      auto made = at::mkldnn_rnn_layer(
          outputs.output, weights[0], weights[1], bias_of_input, bias_of_hidden, h_before, c_before,
          /*reverse=*/direction > 0, /*batch_sizes=*/{}, kLstm, h.size(2), module.layers,
          module.has_biases, module.bidirectional, module.batch_first, module.train);
      by_direction.push_back(std::get<0>(made));
      outputs.h.push_back(std::get<1>(made));
      outputs.c.push_back(std::get<2>(made));
    }
    outputs.output = module.bidirectional ? at::cat(by_direction, -1) : by_direction[0];
    outputs.output = dropped_out(outputs.output, module, layer);
  }
  return outputs.stacked();
}

// ---------------------------------------------------------------- modules

namespace {

template <RecurrentCell cell, CudnnCell cudnn_cell, auto composite>
std::tuple<Tensor, Tensor> with_one_state(const Tensor& input, const Tensor& hx, TensorList params,
                                          bool has_biases, int64_t layers, double dropout,
                                          bool train, bool bidirectional, bool batch_first) {
  const RecurrentModule module{has_biases, layers, dropout, train, bidirectional, batch_first};
  if (auto made = run_cudnn(cudnn_cell, input, std::nullopt, hx, params, module))
    return {std::move(made->output), std::move(made->h)};
  if (!is_for_cpu(input, 3, hx, params, module))
    return composite(input, hx, params, has_biases, layers, dropout, train, bidirectional,
                     batch_first);
  Tensor steps = by_steps(input, module);
  const std::vector<RecurrentState> states = first_states(hx, {});
  RecurrentResults made = run_steps(cell, std::move(steps), states, params, module);
  if (batch_first) made.output.transpose_(0, 1);
  return {std::move(made.output), std::move(made.h)};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first) {
  const RecurrentModule module{has_biases, layers, dropout, train, bidirectional, batch_first};
  if (hx.size() == 2)
    if (auto made = run_cudnn(CudnnCell::kLstm, input, std::nullopt, hx, params, module))
      return {std::move(made->output), std::move(made->h), std::move(made->c)};
  if (hx.size() != 2 || !is_for_cpu(input, 3, hx, params, module))
    return at::native::lstm(input, hx, params, has_biases, layers, dropout, train, bidirectional,
                            batch_first);
  const bool by_onednn = onednn_takes(input.scalar_type());
  if (projects(hx) && by_onednn) {
    TORCH_WARN_ONCE(
        "LSTM with projections is not supported with oneDNN. Using default implementation.");
  }
  RecurrentResults made;
  if (by_onednn && !projects(hx)) {
    made = run_onednn(input, hx, params, module);
  } else {
    Tensor steps = by_steps(input, module);
    const std::vector<RecurrentState> states = first_states(hx[0], hx[1]);
    made = run_steps(lstm_cell, std::move(steps), states, params, module);
  }
  if (batch_first) made.output = made.output.transpose(0, 1);
  return {std::move(made.output), std::move(made.h), std::move(made.c)};
}

using OneState = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, TensorList, bool,
                                                int64_t, double, bool, bool, bool);

}  // namespace

void register_recurrent_modules() {
  constexpr OneState gru = at::native::gru, rnn_tanh = at::native::rnn_tanh,
                     rnn_relu = at::native::rnn_relu;
  for (const auto key : {c10::DispatchKey::Lazy, c10::DispatchKey::AutogradLazy}) {
    torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", key);
    aten.impl("gru.input", with_one_state<gru_cell, CudnnCell::kGru, gru>);
    aten.impl("rnn_tanh.input", with_one_state<tanh_cell, CudnnCell::kTanh, rnn_tanh>);
    aten.impl("rnn_relu.input", with_one_state<relu_cell, CudnnCell::kRelu, rnn_relu>);
    aten.impl("lstm.input", lstm);
  }
  immortal_library(torch::Library::IMPL, "aten", c10::DispatchKey::Lazy)
      .impl("mkldnn_rnn_layer", rnn_layer);
  register_packed_recurrent_modules();
  register_cudnn_rnn();
}

}  // namespace torch_lazy
