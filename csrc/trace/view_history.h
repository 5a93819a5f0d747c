// Where the views of a storage begin, from window to window.
//
// A script that takes another batch of a tensor at each step, x[i:i + n], would make a new trace at
// each step if the view were recorded, since its bounds are constants of a trace. So a view that
// began elsewhere in the window before is made at the call and not recorded: it is metadata and
// costs what it costs in eager. The window knows it as an input, wherever it lies (OffsetKind).
// What is always the same part, x[t] in a recurrence, stays an operation of the window, which then
// has one input and not one for each part.
//
// Views are told apart by their order in the window: the first of a storage, the second, and so on.
//
// Threads: several may look at one storage at a time. What they note may then be mixed up, which
// makes a view be recorded, or be made at the call, that need not.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace torch_lazy {

class ViewHistory {
 public:
  ViewHistory() = default;
  ~ViewHistory() {
    Windows* const seen = windows_.load(std::memory_order_relaxed);
    if (!seen) return;
    delete seen->more.load(std::memory_order_relaxed);
    delete seen;
  }
  ViewHistory(const ViewHistory&) = delete;
  ViewHistory& operator=(const ViewHistory&) = delete;

  // Notes the storage's next view in the window with that serial number; `bounds` stands for all
  // that says which part it is. Returns whether this view has been of another part before.
  bool moves(uint64_t window, uint64_t bounds) {
    Windows& seen = made(windows_);
    if (seen.window.load(std::memory_order_relaxed) != window) {
      seen.window.store(window, std::memory_order_relaxed);
      seen.next.store(0, std::memory_order_relaxed);
    }
    const size_t view = seen.next.load(std::memory_order_relaxed);
    if (view >= kViews) return false;
    seen.next.store(uint32_t(view + 1), std::memory_order_relaxed);
    std::atomic<uint32_t>& last =
        view < kFew ? seen.bounds[view] : made(seen.more).bounds[view - kFew];
    const uint32_t known = last.load(std::memory_order_relaxed);
    if (known == kMoving) return true;
    const uint32_t given = uint32_t(bounds >> 32) | kSeen;
    if (known == given) return false;
    last.store(known == kNotSeen ? given : kMoving, std::memory_order_relaxed);
    return known != kNotSeen;
  }

 private:
  static constexpr size_t kViews = 256;  // in a window; more are recorded
  static constexpr size_t kFew = 6;      // of most storages there are no more
  static constexpr uint32_t kNotSeen = 0, kMoving = 1, kSeen = 2;

  struct More {
    std::array<std::atomic<uint32_t>, kViews - kFew> bounds{};
  };
  struct Windows {
    std::atomic<uint64_t> window{0};
    std::atomic<uint32_t> next{0};
    std::array<std::atomic<uint32_t>, kFew> bounds{};  // by view
    std::atomic<More*> more{nullptr};
  };

  // What is needed of few storages is made when it is.
  template <class Part>
  static Part& made(std::atomic<Part*>& place) {
    Part* known = place.load(std::memory_order_acquire);
    if (known) [[likely]]
      return *known;
    Part* const fresh = new Part;
    if (place.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
    return *known;
  }

  std::atomic<Windows*> windows_{nullptr};
};

}  // namespace torch_lazy
