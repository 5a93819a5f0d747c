// torch.nn.RNN, GRU and LSTM by cuDNN, where CUDA takes it and lazy tensors live there: the choice
// of ATen/native/RNN.cpp, and the call of ATen/native/cudnn/RNN.cpp. The gradient is that of
// PyTorch's own operator, which is called here with lazy tensors and recorded under another name
// (ops/cudnn_rnn_operator.h).
//
// A module that drops out between its layers has cuDNN compute one layer at a time, and drops out
// as any module does: the state of cuDNN's own random numbers is kept where only PyTorch's CUDA
// library finds it, and could not stand in windows.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/immortal_library.h"
#include "device/autocast.h"
#include "device/boxed.h"
#include "device/lazy_tensor.h"
#include "device/recurrent_modules.h"

namespace torch_lazy {
namespace {

using at::Tensor;
using at::TensorList;

// ---------------------------------------------------------------- the choice

bool cudnn_computes_in(c10::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kHalf || dtype == at::kDouble ||
         (dtype == at::kBFloat16 && at::detail::getCUDAHooks().supportsBFloat16RNNWithCuDNN());
}

bool cuda_takes_cudnn(const Tensor& input) {
  return at::globalContext().userEnabledCuDNN() && at::detail::getCUDAHooks().compiledWithCuDNN() &&
         input.numel() != 0 && cudnn_computes_in(input.scalar_type());
}

// States for each cell and sequence, and as many weights as cells have. What is wrong with others
// PyTorch's composite tells.
bool fits(const Tensor& input, std::optional<at::IntArrayRef> batch_sizes, TensorList hx,
          TensorList params, const RecurrentModule& module) {
  if (input.dim() != (batch_sizes ? 2 : 3) || module.layers <= 0) return false;
  if (batch_sizes && batch_sizes->empty()) return false;
  const int64_t batch = batch_sizes ? batch_sizes->front() : input.size(module.batch_first ? 0 : 1);
  for (const Tensor& state : hx)
    if (state.dim() != 3 || state.size(0) != int64_t(module.cells()) || state.size(1) != batch)
      return false;
  return params.size() == module.cells() * ((module.has_biases ? 4 : 2) + size_t(projects(hx)));
}

// ---------------------------------------------------------------- the call

// Autocast's cast of a module that cuDNN computes, which is to half whatever its dtype.
Tensor in_half(const Tensor& tensor) {
  const bool is_cast = tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
  return is_cast ? tensor.to(at::kHalf) : tensor;
}

std::vector<Tensor> in_half(TensorList tensors) {
  std::vector<Tensor> cast;
  for (const Tensor& tensor : tensors) cast.push_back(in_half(tensor));
  return cast;
}

// Of layers that drop out nothing between each other.
RecurrentResults run_layers(CudnnCell cell, const Tensor& input, at::IntArrayRef batch_sizes,
                            TensorList hx, TensorList params, const RecurrentModule& module) {
  const bool is_lstm = cell == CudnnCell::kLstm;
  const int64_t proj_size = projects(hx) ? hx[0].size(2) : 0;
  auto made = at::_cudnn_rnn(input, params, int64_t(params.size() / module.cells()),
                             /*weight_buf=*/{}, hx[0], is_lstm ? hx[1] : Tensor(), int64_t(cell),
                             hx.back().size(2), proj_size, module.layers, module.batch_first,
                             /*dropout=*/0, module.train, module.bidirectional, batch_sizes,
                             /*dropout_state=*/{});
  return {std::get<0>(made), std::get<1>(made), is_lstm ? std::get<2>(made) : Tensor()};
}

RecurrentResults run_layer_by_layer(CudnnCell cell, const Tensor& input,
                                    at::IntArrayRef batch_sizes, TensorList hx, TensorList params,
                                    const RecurrentModule& module) {
  RecurrentModule one_layer = module;
  one_layer.layers = 1;
  const auto directions = int64_t(module.directions());
  const size_t weights = params.size() / size_t(module.layers);
  std::vector<Tensor> h, c;
  Tensor output = input;
  for (int64_t layer = 0; layer < module.layers; ++layer) {
    if (layer > 0) output = at::dropout(output, module.dropout, /*train=*/true);
    std::vector<Tensor> states;
    for (const Tensor& state : hx)
      states.push_back(state.narrow(0, layer * directions, directions));
    RecurrentResults made = run_layers(cell, output, batch_sizes, states,
                                       params.slice(size_t(layer) * weights, weights), one_layer);
    output = std::move(made.output);
    h.push_back(std::move(made.h));
    c.push_back(std::move(made.c));
  }
  return {std::move(output), at::cat(h), cell == CudnnCell::kLstm ? at::cat(c) : Tensor()};
}

// ---------------------------------------------------------------- PyTorch's operator

bool is_given(const c10::IValue& tensor) {
  return tensor.isTensor() && tensor.toTensor().defined();
}

std::optional<Tensor> optional_tensor(const c10::IValue& tensor) {
  return is_given(tensor) ? std::optional<Tensor>(tensor.toTensor()) : std::nullopt;
}

// The arguments of a call, by name.
class Given {
 public:
  Given(const c10::FunctionSchema& schema, const torch::jit::Stack& stack)
      : schema_(schema), first_(stack.end() - std::ptrdiff_t(schema.arguments().size())) {}

  const c10::IValue& operator()(const char* name) const {
    const std::optional<int> index = schema_.argumentIndexWithName(name);
    TORCH_INTERNAL_ASSERT(index, schema_.name(), " has no argument ", name);
    return first_[*index];
  }

  // On lazy tensors that live on CUDA, without random numbers.
  bool is_recorded() const {
    const bool drops_out = (*this)("train").toBool() && (*this)("dropout").toDouble() != 0;
    return is_lazy((*this)("input").toTensor()) && !drops_out &&
           !is_given((*this)("dropout_state")) && execution_device().key == c10::DispatchKey::CUDA;
  }

  CudnnRnn rnn() const {
    return {(*this)("mode").toInt(),           (*this)("hidden_size").toInt(),
            (*this)("proj_size").toInt(),      (*this)("num_layers").toInt(),
            (*this)("batch_first").toBool(),   (*this)("train").toBool(),
            (*this)("bidirectional").toBool(), (*this)("batch_sizes").toIntVector()};
  }

 private:
  const c10::FunctionSchema& schema_;
  const torch::jit::Stack::const_iterator first_;
};

void forward_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const Given given(op.schema(), *stack);
  if (!given.is_recorded() || is_given(given("weight_buf"))) return boxed_kernel(op, keys, stack);
  auto [output, hy, cy, reserve, weight_buffer] =
      cudnn_rnn(given("input").toTensor(), given("weight").toTensorVector(), given("hx").toTensor(),
                optional_tensor(given("cx")), given.rnn());
  torch::jit::drop(stack, op.schema().arguments().size());
  torch::jit::push(stack, std::move(output), std::move(hy), std::move(cy), std::move(reserve),
                   std::move(weight_buffer));
}

void backward_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  const Given given(op.schema(), *stack);
  if (!given.is_recorded()) return boxed_kernel(op, keys, stack);
  const CudnnRnnGradients gradients{optional_tensor(given("grad_output")),
                                    optional_tensor(given("grad_hy")),
                                    optional_tensor(given("grad_cy"))};
  const size_t weights = given("weight").toListRef().size();
  Tensor of_input, of_hx, of_cx;
  std::vector<Tensor> of_weights(weights);
  if (gradients.output || gradients.hy || gradients.cy) {
    const CudnnRnnPast past{given("input").toTensor(),  given("weight_buf").toTensor(),
                            given("hx").toTensor(),     optional_tensor(given("cx")),
                            given("output").toTensor(), given("reserve").toTensor()};
    const bool has_biases = given("weight_stride0").toInt() >= 4;
    const bool wants_weights = given("output_mask").toBoolList()[3];
    std::vector<Tensor> made =
        cudnn_rnn_backward(past, gradients, given.rnn(), has_biases, wants_weights);
    of_input = std::move(made[0]);
    of_hx = std::move(made[1]);
    if (past.cx) of_cx = std::move(made[2]);
    if (wants_weights)
      std::move(made.end() - std::ptrdiff_t(weights), made.end(), of_weights.begin());
    else
      of_weights.clear();
  }
  torch::jit::drop(stack, op.schema().arguments().size());
  torch::jit::push(stack, std::move(of_input), std::move(of_hx), std::move(of_cx),
                   std::move(of_weights));
}

}  // namespace

std::optional<RecurrentResults> run_cudnn(CudnnCell cell, const Tensor& input,
                                          std::optional<at::IntArrayRef> batch_sizes, TensorList hx,
                                          TensorList params, const RecurrentModule& module) {
  if (!is_lazy(input) || execution_device().key != c10::DispatchKey::CUDA || !are_lazy(hx) ||
      !are_lazy(params) || !cuda_takes_cudnn(input) ||
      !fits(input, batch_sizes, hx, params, module))
    return std::nullopt;
  const at::IntArrayRef sizes = batch_sizes.value_or(at::IntArrayRef());
  const bool drops_out = module.train && module.dropout != 0 && module.layers > 1;
  const auto run = drops_out ? run_layer_by_layer : run_layers;
  if (!is_autocast_active()) return run(cell, input, sizes, hx, params, module);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastIPU);
  return run(cell, in_half(input), sizes, in_half(hx), in_half(params), module);
}

void register_cudnn_rnn() {
  torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", c10::DispatchKey::Lazy);
  aten.impl("_cudnn_rnn", torch::CppFunction::makeFromBoxedFunction<&forward_kernel>());
  aten.impl("_cudnn_rnn_backward", torch::CppFunction::makeFromBoxedFunction<&backward_kernel>());
}

}  // namespace torch_lazy
