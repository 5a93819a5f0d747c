#include "trace/beginnings.h"

#include <c10/util/SmallVector.h>
#include <xxhash.h>

#include <bit>

#include "trace/promotion.h"

namespace torch_lazy {

// Guards against a script that begins windows in new ways for ever.
constexpr size_t kMostSeen = 1 << 16;

bool Beginnings::follow(const Tape& tape) {
  // Windows that are the same so far seldom part later.
  constexpr size_t kLongest = 16;
  while (taken_ < tape.size() && taken_ < kLongest) {
    take(tape, taken_++);
    if (!std::has_single_bit(taken_)) continue;
    if (seen_.size() >= kMostSeen) seen_.clear();
    if (seen_.insert(hash_).second) familiar_ = false;
  }
  return familiar_;
}

bool Beginnings::at_known_place(uint64_t place) {
  if (places_.size() >= kMostSeen) places_.clear();
  return !places_.insert(place).second;
}

void Beginnings::take(const Tape& tape, size_t index) {
  const bool open = tape.is_open() && index + 1 == tape.size();
  const c10::ArrayRef<uint64_t> words = open ? tape.open_words() : tape.words(index);
  const auto numbers = promotable_words(*tape.entry(index).op, words);
  if (numbers.empty()) {
    hash_ = XXH3_64bits_withSeed(words.data(), words.size() * sizeof(uint64_t), hash_);
    return;
  }
  c10::SmallVector<uint64_t, 64> without(words.begin(), words.end());
  for (const uint32_t word : numbers) without[word] = 0;
  hash_ = XXH3_64bits_withSeed(without.data(), without.size() * sizeof(uint64_t), hash_);
}

}  // namespace torch_lazy
