#include "tape/operation_location.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#if __has_include(<torch/csrc/autograd/node.h>)
#include <torch/csrc/autograd/node.h>
#else
#include <torch/csrc/autograd/function.h>
#endif

#include <array>
#include <atomic>
#include <cstdint>

namespace torch_lazy {
namespace {

// The lines of the forward operations that made autograd nodes: the latest 65,536, older ones read
// as kNoLocation. Sequence numbers count per thread, so each is paired with the thread that ran
// forward (Node::thread_id, RecordFunction::currentThreadId).
//
// Each entry packs 32 bits of (sequence number, thread) above the location, so that one relaxed
// load reads a consistent pair. A tag collision names a wrong line in a message, nothing worse.
constexpr size_t kForwardEntries = size_t{1} << 16;
std::array<std::atomic<uint64_t>, kForwardEntries> forward_ring{};

size_t forward_slot(uint64_t sequence_number, uint64_t thread) {
  // Threads are spread apart, consecutive nodes of one thread stay neighbours.
  return (sequence_number + thread * 0x9E37) % kForwardEntries;
}

uint32_t forward_tag(uint64_t sequence_number, uint64_t thread) {
  const uint64_t both = sequence_number * 0xD1B54A32D192ED03ull + thread;
  return static_cast<uint32_t>(both * 0x9E3779B97F4A7C15ull >> 32);
}

void remember_forward(uint64_t sequence_number, uint64_t forward_thread, LocationId id) {
  const uint64_t packed =
      (uint64_t{forward_tag(sequence_number, forward_thread)} << 32) | uint64_t{id};
  forward_ring[forward_slot(sequence_number, forward_thread)].store(packed,
                                                                    std::memory_order_relaxed);
}

LocationId forward_location(uint64_t sequence_number, uint64_t forward_thread) {
  const uint64_t packed =
      forward_ring[forward_slot(sequence_number, forward_thread)].load(std::memory_order_relaxed);
  return (packed >> 32) == forward_tag(sequence_number, forward_thread)
             ? static_cast<LocationId>(packed)
             : kNoLocation;
}

// Autograd's next sequence number when the thread's latest operation was seen.
#if defined(__GLIBC__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local uint64_t next_sequence_number = 0;

}  // namespace

LocationId current_operation_location(bool in_backward) {
  LocationId id = kNoLocation;
  if (in_backward) {
    if (const auto node = torch::autograd::get_current_node()) {
      id = forward_location(node->sequence_nr(), node->thread_id());
    }
  }
  if (id == kNoLocation) id = current_location();
  // Autograd makes nodes only in grad mode, so a new sequence number says all. Only the first
  // operation after a node was made belongs to it: the next may have no node at all, and must not
  // claim this one. With create_graph, nodes made in backward inherit the forward line.
  const uint64_t next = at::sequence_number::peek();
  if (next != next_sequence_number) {
    next_sequence_number = next;
    if (next > 0) remember_forward(next - 1, at::RecordFunction::currentThreadId(), id);
  }
  return id;
}

void pass_operation_locations() {
  next_sequence_number = at::sequence_number::peek();
}

}  // namespace torch_lazy
