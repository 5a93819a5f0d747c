#include "trace/backward_streams.h"

#include <c10/core/Event.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <optional>

#include "backend/execution_device.h"
#include "tape/autograd_node.h"

namespace torch_lazy {
namespace {

// Of the forward operation, as Node::stream() would say of an accelerator's tensors.
std::optional<c10::Stream> forward_stream(const torch::autograd::Node& node) {
  for (uint32_t i = 0; i < node.num_inputs(); ++i)
    if (node.input_metadata(i).device().is_lazy()) return node.input_metadata(i).stream();
  return std::nullopt;
}

// With all that was asked of the one so far, of windows too.
void let_wait(const c10::Stream& waiting, const c10::Stream& other) {
  c10::Event event(c10::DeviceType::Lazy);
  event.record(other);
  event.block(waiting);
}

}  // namespace

void BackwardStreams::begin_operation() {
  const ExecutionDevice* const device = chosen_execution_device();
  if (!device || !device->guard) return;
  if (const int task = torch::autograd::get_current_graph_task_id(); task != graph_task_) {
    begin_operation_behind();
    graph_task_ = task;
  }
  const auto node = torch::autograd::get_current_node();
  const auto forward = node ? forward_stream(*node) : std::nullopt;
  if (!forward) return;
  const c10::Stream current(c10::Stream::UNSAFE, forward->device(),
                            device->guard->getStream(inner_device(forward->device())).id());
  const auto pair = std::make_pair(current, *forward);
  if (current == *forward || std::ranges::find(waited_, pair) != waited_.end()) return;
  waited_.push_back(pair);
  let_wait(current, *forward);
}

void BackwardStreams::end() {
  for (const auto& [backward, forward] : std::exchange(waited_, {})) let_wait(forward, backward);
}

}  // namespace torch_lazy
