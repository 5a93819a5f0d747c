#include "trace/window_history.h"

#include <xxhash.h>

namespace torch_lazy {

const WindowHistory::Guess* WindowHistory::next(const KnownTraces* traces) const {
  const auto found = guesses_.find(key(traces));
  return found == guesses_.end() ? nullptr : &found->second;
}

void WindowHistory::note_end(const KnownTraces* traces, const std::shared_ptr<CompiledTrace>& trace,
                             bool dropped) {
  if (guesses_.size() >= kMostGuesses) guesses_.clear();
  Guess& guess = guesses_[key(traces)];
  const std::shared_ptr<CompiledTrace> before = guess.trace.lock();
  const bool wrong = dropped && before != trace;  // else it was compiled anew meanwhile
  guess.ended_otherwise = wrong || (before && before != trace);
  guess.was_wrong |= wrong;
  guess.trace = trace;
  last_[next_] = trace.get();
  next_ = (next_ + 1) % kWindows;
}

uint64_t WindowHistory::key(const KnownTraces* traces) const {
  std::array<const void*, kWindows + 1> in_order;
  for (size_t i = 0; i < kWindows; ++i) in_order[i] = last_[(next_ + i) % kWindows];
  in_order.back() = traces;
  return XXH3_64bits(in_order.data(), sizeof in_order);
}

}  // namespace torch_lazy
