#include "trace/window_history.h"

#include <xxhash.h>

namespace torch_lazy {

const WindowHistory::Guess* WindowHistory::next() const {
  const auto found = guesses_.find(key());
  return found == guesses_.end() ? nullptr : &found->second;
}

void WindowHistory::note_end(const std::shared_ptr<CompiledTrace>& trace, bool wrong) {
  if (guesses_.size() >= kMostGuesses) guesses_.clear();
  Guess& guess = guesses_[key()];
  const std::shared_ptr<CompiledTrace> before = guess.trace.lock();
  guess.ended_otherwise = wrong || (before && before != trace);
  guess.was_wrong |= wrong;
  guess.trace = trace;
  last_[next_] = trace.get();
  next_ = (next_ + 1) % kWindows;
}

uint64_t WindowHistory::key() const {
  std::array<const CompiledTrace*, kWindows> in_order;
  for (size_t i = 0; i < kWindows; ++i) in_order[i] = last_[(next_ + i) % kWindows];
  return XXH3_64bits(in_order.data(), sizeof in_order);
}

}  // namespace torch_lazy
