#include "trace/known_traces.h"

#include <cstring>

namespace torch_lazy {
namespace {

bool equal_words(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(uint64_t)) == 0;
}

}  // namespace

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
  for (const auto& exit : segment_->exits_[index_]) {
    if (equal_words(exit->words(0), words)) {
      segment_ = exit.get();
      index_ = 1;
      return true;
    }
  }
  return false;
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
    auto& exits = cursor.segment_->exits_[cursor.index_];
    exits.push_back(std::make_unique<Segment>(trace, matched));
    cursor.segment_ = exits.back().get();
    cursor.index_ = tape.size() - matched;
  }
  cursor.segment_->ends_[cursor.index_] = {trace, automatic_end};
}

}  // namespace torch_lazy
