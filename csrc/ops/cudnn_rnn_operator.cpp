#include "ops/cudnn_rnn_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/_cudnn_rnn_backward.h>
#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "base/fork.h"
#include "base/immortal_library.h"

namespace torch_lazy {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using CudnnResults = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

constexpr double kNoDropout = 0;

// ---------------------------------------------------------------- the buffer of weights

// The weights of a cell: of input and state, the biases of both, and the projection.
std::vector<std::vector<int64_t>> weight_sizes(const CudnnRnn& rnn, int64_t input_size,
                                               size_t cell) {
  const auto kind = CudnnCell(rnn.mode);
  const int64_t gates = kind == CudnnCell::kLstm ? 4 : kind == CudnnCell::kGru ? 3 : 1;
  const int64_t rows = gates * rnn.hidden_size;
  const int64_t state = rnn.proj_size ? rnn.proj_size : rnn.hidden_size;
  const size_t directions = rnn.bidirectional ? 2 : 1;
  const int64_t features = cell < directions ? input_size : state * int64_t(directions);
  std::vector<std::vector<int64_t>> sizes{{rows, features}, {rows, state}, {rows}, {rows}};
  if (rnn.proj_size) sizes.push_back({rnn.proj_size, rnn.hidden_size});
  return sizes;
}

// Where cuDNN expects the weights of each cell.
struct WeightLayout {
  struct Slot {
    int64_t offset, elements;
    std::vector<int64_t> sizes;
  };
  int64_t elements = 0;  // of the whole buffer
  size_t slots_of_cell = 0;
  std::vector<Slot> slots;
};

// Asked of cuDNN, which may leave gaps, by weights that it is told to move into a buffer.
WeightLayout find_layout(const CudnnRnn& rnn, int64_t input_size,
                         const at::TensorOptions& options) {
  WeightLayout layout;
  std::vector<Tensor> moved;
  for (size_t cell = 0; cell < rnn.cells(); ++cell)
    for (const auto& sizes : weight_sizes(rnn, input_size, cell))
      moved.push_back(at::empty(sizes, options));
  layout.slots_of_cell = weight_sizes(rnn, input_size, 0).size();
  const Tensor buffer = at::_cudnn_rnn_flatten_weight(
      moved, int64_t(layout.slots_of_cell), input_size, rnn.mode, rnn.hidden_size, rnn.proj_size,
      rnn.num_layers, /*batch_first=*/false, rnn.bidirectional);
  layout.elements = buffer.numel();
  for (const Tensor& weight : moved)
    layout.slots.push_back({weight.storage_offset(), weight.numel(), weight.sizes().vec()});
  return layout;
}

// Of an input's last dimension and a buffer's options. Lives as long as the process.
const WeightLayout& weight_layout(const CudnnRnn& rnn, int64_t input_size,
                                  const at::TensorOptions& options) {
  using Key = std::array<int64_t, 8>;
  static auto& mutex = *new ForkSafeMutex(LockOrder::kLeaf);  // guards the layouts
  static auto& layouts = *new std::map<Key, WeightLayout>;
  const Key key{rnn.mode,
                input_size,
                rnn.hidden_size,
                rnn.proj_size,
                rnn.num_layers,
                int64_t(rnn.bidirectional),
                int64_t(c10::typeMetaToScalarType(options.dtype())),
                int64_t(options.device().index())};
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = layouts.find(key); found != layouts.end()) return found->second;
  }
  WeightLayout found = find_layout(rnn, input_size, options);
  const std::lock_guard<std::mutex> lock(mutex);
  return layouts.try_emplace(key, std::move(found)).first->second;
}

// Biases stand between the weights of a cell and its projection; not every module has them.
bool is_bias(size_t slot) {
  return slot == 2 || slot == 3;
}

// The parts of the buffer, those of all cells in order.
std::vector<Tensor> weights_in(const Tensor& buffer, const WeightLayout& layout, bool biases_too) {
  std::vector<Tensor> weights;
  for (size_t i = 0; i < layout.slots.size(); ++i) {
    const WeightLayout::Slot& slot = layout.slots[i];
    if (biases_too || !is_bias(i % layout.slots_of_cell))
      weights.push_back(buffer.narrow(0, slot.offset, slot.elements).view(slot.sizes));
  }
  return weights;
}

// What the module has no weights for is zero: biases, and the gaps.
Tensor buffer_of(at::TensorList weights, const WeightLayout& layout) {
  int64_t given = 0;
  for (const Tensor& weight : weights) given += weight.numel();
  const at::TensorOptions options = weights[0].options();
  Tensor buffer = given == layout.elements ? at::empty(layout.elements, options)
                                           : at::zeros(layout.elements, options);
  const std::vector<Tensor> places =
      weights_in(buffer, layout, weights.size() == layout.slots.size());
  TORCH_CHECK(places.size() == weights.size(), "cuDNN has ", places.size(), " weights for ",
              weights.size(), " of the module");
  std::vector<Tensor> sources;
  sources.reserve(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    sources.push_back(weights[i].reshape(places[i].sizes()));
  at::_foreach_copy_(places, sources);
  return buffer;
}

// ---------------------------------------------------------------- kernels

CudnnResults run(const Tensor& input, at::TensorList weights, const Tensor& hx,
                 const MaybeTensor& cx, int64_t mode, int64_t hidden_size, int64_t proj_size,
                 int64_t num_layers, bool batch_first, bool train, bool bidirectional,
                 at::IntArrayRef batch_sizes) {
  const CudnnRnn rnn{mode,        hidden_size, proj_size,     num_layers,
                     batch_first, train,       bidirectional, {}};
  const WeightLayout& layout = weight_layout(rnn, input.size(-1), weights[0].options());
  Tensor buffer = buffer_of(weights, layout);
  const int64_t stride = int64_t(weights.size() / rnn.cells());
  CudnnResults made =
      at::_cudnn_rnn(input, weights, stride, buffer, hx, cx, mode, hidden_size, proj_size,
                     num_layers, batch_first, kNoDropout, train, bidirectional, batch_sizes,
                     /*dropout_state=*/{});
  std::get<4>(made) = std::move(buffer);
  return made;
}

// The gradients of weights are parts of one buffer in cuDNN's order, which tensors of a window
// cannot be: each gets memory of its own, by one kernel.
std::vector<Tensor> apart(const std::vector<Tensor>& parts) {
  std::vector<Tensor> copies;
  copies.reserve(parts.size());
  for (const Tensor& part : parts) copies.push_back(at::empty(part.sizes(), part.options()));
  at::_foreach_copy_(copies, parts);
  return copies;
}

std::vector<Tensor> run_backward(const Tensor& input, const Tensor& weight_buffer, const Tensor& hx,
                                 const MaybeTensor& cx, const Tensor& output, const Tensor& reserve,
                                 const MaybeTensor& grad_output, const MaybeTensor& grad_hy,
                                 const MaybeTensor& grad_cy, int64_t mode, int64_t hidden_size,
                                 int64_t proj_size, int64_t num_layers, bool batch_first,
                                 bool train, bool bidirectional, at::IntArrayRef batch_sizes,
                                 bool has_biases, bool of_weights) {
  const CudnnRnn rnn{mode,        hidden_size, proj_size,     num_layers,
                     batch_first, train,       bidirectional, {}};
  const WeightLayout& layout = weight_layout(rnn, input.size(-1), weight_buffer.options());
  const bool has_cells = cx && cx->defined();
  // cuDNN writes to the reserve, which a window may hold for another reader, or read again.
  auto [of_input, of_hx, of_cx, of_all] = at::_cudnn_rnn_backward(
      input, weights_in(weight_buffer, layout, /*biases_too=*/true), int64_t(layout.slots_of_cell),
      weight_buffer, hx, cx, output, grad_output, grad_hy, grad_cy, mode, hidden_size, proj_size,
      num_layers, batch_first, kNoDropout, train, bidirectional, batch_sizes, /*dropout_state=*/{},
      reserve.clone(), {true, true, has_cells, of_weights});
  std::vector<Tensor> made{std::move(of_input), std::move(of_hx)};
  if (has_cells) made.push_back(std::move(of_cx));
  if (!of_weights) return made;
  std::vector<Tensor> wanted;
  for (size_t i = 0; i < of_all.size(); ++i)
    if (has_biases || !is_bias(i % layout.slots_of_cell)) wanted.push_back(std::move(of_all[i]));
  for (Tensor& weight : apart(wanted)) made.push_back(std::move(weight));
  return made;
}

}  // namespace

void register_cudnn_rnn_operator() {
  torch::Library& library = immortal_library(torch::Library::FRAGMENT, "torch_lazy", std::nullopt);
  library.def(
      "cudnn_rnn(Tensor input, Tensor[] weights, Tensor hx, Tensor? cx, int mode, int hidden_size, "
      "int proj_size, int num_layers, bool batch_first, bool train, bool bidirectional, "
      "int[] batch_sizes) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  library.def(
      "cudnn_rnn_backward(Tensor input, Tensor weight_buffer, Tensor hx, Tensor? cx, "
      "Tensor output, Tensor reserve, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, "
      "int mode, int hidden_size, int proj_size, int num_layers, bool batch_first, bool train, "
      "bool bidirectional, int[] batch_sizes, bool has_biases, bool of_weights) -> Tensor[]");
  torch::Library& cuda =
      immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CUDA);
  cuda.impl("cudnn_rnn", run);
  cuda.impl("cudnn_rnn_backward", run_backward);
}

CudnnResults cudnn_rnn(const Tensor& input, at::TensorList weights, const Tensor& hx,
                       const MaybeTensor& cx, const CudnnRnn& rnn) {
  static const auto forward = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("torch_lazy::cudnn_rnn", "")
                                  .typed<decltype(run)>();
  return forward.call(input, weights, hx, cx, rnn.mode, rnn.hidden_size, rnn.proj_size,
                      rnn.num_layers, rnn.batch_first, rnn.train, rnn.bidirectional,
                      rnn.batch_sizes);
}

std::vector<Tensor> cudnn_rnn_backward(const CudnnRnnPast& past, const CudnnRnnGradients& gradients,
                                       const CudnnRnn& rnn, bool has_biases, bool of_weights) {
  static const auto backward = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("torch_lazy::cudnn_rnn_backward", "")
                                   .typed<decltype(run_backward)>();
  return backward.call(past.input, past.weight_buffer, past.hx, past.cx, past.output, past.reserve,
                       gradients.output, gradients.hy, gradients.cy, rnn.mode, rnn.hidden_size,
                       rnn.proj_size, rnn.num_layers, rnn.batch_first, rnn.train, rnn.bidirectional,
                       rnn.batch_sizes, has_biases, of_weights);
}

}  // namespace torch_lazy
