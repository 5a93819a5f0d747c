#include "tape/operation_location.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "tape/autograd_node.h"
#include "tape/python_frames.h"

namespace torch_lazy {
namespace {

// The lines of the forward operations that made autograd nodes: the latest 65,536, older ones read
// as kNoLocation. Sequence numbers count per thread, so each is paired with the thread that ran
// forward (Node::thread_id, RecordFunction::currentThreadId).
//
// An entry is written and read without a lock: its check is the key of its node and the location in
// one, so that a check and a location of two nodes do not pass for an entry.
constexpr size_t kForwardEntries = size_t{1} << 16;
struct ForwardEntry {
  std::atomic<uint64_t> check{0};  // key ^ location
  std::atomic<LocationId> location{kNoLocation};
};
std::array<ForwardEntry, kForwardEntries> forward_ring{};

ForwardEntry& forward_entry(uint64_t sequence_number, uint64_t thread) {
  // Threads are spread apart, consecutive nodes of one thread stay neighbours.
  return forward_ring[(sequence_number + thread * 0x9E37) % kForwardEntries];
}

uint64_t forward_key(uint64_t sequence_number, uint64_t thread) {
  return (sequence_number * 0xD1B54A32D192ED03ull + thread) * 0x9E3779B97F4A7C15ull;
}

void remember_forward(uint64_t sequence_number, uint64_t forward_thread, LocationId id) {
  ForwardEntry& entry = forward_entry(sequence_number, forward_thread);
  entry.check.store(forward_key(sequence_number, forward_thread) ^ id, std::memory_order_relaxed);
  entry.location.store(id, std::memory_order_relaxed);
}

LocationId forward_location(uint64_t sequence_number, uint64_t forward_thread) {
  const ForwardEntry& entry = forward_entry(sequence_number, forward_thread);
  const LocationId id = entry.location.load(std::memory_order_relaxed);
  const uint64_t check = entry.check.load(std::memory_order_relaxed);
  return check == (forward_key(sequence_number, forward_thread) ^ id) ? id : kNoLocation;
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

}  // namespace torch_lazy
