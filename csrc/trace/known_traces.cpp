#include "trace/known_traces.h"

#include <xxhash.h>

#include <cstring>

namespace torch_lazy {
namespace {

bool equal_words(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(uint64_t)) == 0;
}

uint64_t hash_words(c10::ArrayRef<uint64_t> words) {
  return XXH3_64bits(words.data(), words.size() * sizeof(uint64_t));
}

}  // namespace

Segment* Segment::Exits::find(c10::ArrayRef<uint64_t> words) const {
  if (by_words.empty()) return nullptr;
  const auto [first, last] = by_words.equal_range(hash_words(words));
  for (auto exit = first; exit != last; ++exit)
    if (equal_words(exit->second->words(0), words)) return exit->second.get();
  return nullptr;
}

Segment::Segment(std::shared_ptr<CompiledTrace> trace, size_t from)
    : trace_(std::move(trace)),
      from_(from),
      exits_(trace_->tape().size() - from + 1),
      ends_(trace_->tape().size() - from + 1) {}

bool Cursor::advance(c10::ArrayRef<uint64_t> words) {
  if (index_ < segment_->size() && equal_words(segment_->words(index_), words)) {
    ++index_;
    return true;
  }
  Segment* exit = segment_->exits_[index_].find(words);
  if (!exit) return false;
  segment_ = exit;
  index_ = 1;
  return true;
}

void KnownTraces::insert(const std::shared_ptr<CompiledTrace>& trace, bool automatic_end) {
  const Tape& tape = trace->tape();
  Cursor cursor = start();
  size_t matched = 0;
  while (matched < tape.size() && cursor.advance(tape.words(matched))) {
    // Equal calls that returned other metadata: what the first trace says stays, this one is never
    // hot.
    if (!equal_words(cursor.output_words(), tape.outputs(matched))) return;
    ++matched;
  }
  if (matched < tape.size()) {
    auto& exits = cursor.segment_->exits_[cursor.index_].by_words;
    const auto added =
        exits.emplace(hash_words(tape.words(matched)), std::make_unique<Segment>(trace, matched));
    cursor.segment_ = added->second.get();
    cursor.index_ = tape.size() - matched;
  }
  cursor.segment_->ends_[cursor.index_] = {trace, automatic_end};
}

}  // namespace torch_lazy
