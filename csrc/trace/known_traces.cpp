#include "trace/known_traces.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace torch_lazy {
namespace {

bool equal_words(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(uint64_t)) == 0;
}

uint64_t hash_words(c10::ArrayRef<uint64_t> words) {
  return XXH3_64bits(words.data(), words.size() * sizeof(uint64_t));
}

// Whether the words of a tape between `begin` and `end` are that operation of the trace.
bool is_operation(const CompiledTrace& trace, size_t operation, const Tape& tape, size_t begin,
                  size_t end) {
  const auto words = trace.tape().words(operation);
  const auto numbers = trace.dynamic(operation);
  if (numbers.empty()) return equal_words(words, tape.all_words().slice(begin, end - begin));
  return matches(tape.all_words(), begin, end, words, numbers);
}

}  // namespace

void Segment::SideExits::add(std::unique_ptr<Segment> segment) {
  std::vector<uint32_t> words;
  const size_t begin = segment->trace_->tape().words_begin(segment->from_);
  for (const DynamicScalar& number : segment->dynamic(0))
    words.push_back(uint32_t(number.word - begin));
  if (std::find(dynamic.begin(), dynamic.end(), words) == dynamic.end())
    dynamic.push_back(std::move(words));
  by_words.emplace(hash_words(segment->words(0)), std::move(segment));
}

template <typename Visit>
void Segment::SideExits::each(const Tape& tape, size_t begin, size_t end,
                              const Visit& visit) const {
  const auto words = tape.all_words().slice(begin, end - begin);
  c10::SmallVector<uint64_t, 64> masked;
  for (const std::vector<uint32_t>& pattern : dynamic) {
    uint64_t hash;
    if (pattern.empty()) {
      hash = hash_words(words);
    } else {
      if (pattern.back() >= words.size()) continue;
      masked.assign(words.begin(), words.end());
      for (const uint32_t word : pattern) masked[word] = 0;
      hash = hash_words(masked);
    }
    const auto [first, last] = by_words.equal_range(hash);
    for (auto exit = first; exit != last; ++exit)
      if (exit->second->matches(0, tape, begin, end) && visit(exit->second.get())) return;
  }
}

bool Segment::matches(size_t index, const Tape& tape, size_t begin, size_t end) const {
  return is_operation(*trace_, from_ + index, tape, begin, end);
}

Segment::Segment(std::shared_ptr<CompiledTrace> trace, size_t from)
    : trace_(std::move(trace)), from_(from), places_(trace_->tape().size() - from + 1) {}

Cursor::Cursor(KnownTraces* traces) : traces_(traces), segment_(&traces->root_) {}

bool Cursor::advance(const Tape& tape) {
  const size_t begin = tape.words_begin(tape.size() - 1), end = tape.all_words().size();
  if (index_ < segment_->size() && segment_->matches(index_, tape, begin, end)) {
    ++index_;
    return true;
  }
  const Segment::SideExits* const exits = segment_->side_exits(index_);
  if (!exits) return false;
  Segment* found = nullptr;
  exits->each(tape, begin, end, [&](Segment* exit) {
    found = exit;
    return true;
  });
  if (!found) return false;
  segment_ = found;
  index_ = 1;
  return true;
}

bool Cursor::find_again(const Tape& tape, bool to_end) {
  return traces_->has_dynamic_scalars_ && find(tape, to_end);
}

bool Cursor::find(const Tape& tape, bool to_end) {
  struct Place {
    Segment* segment;
    size_t index;
    size_t operation;
  };
  // The tree's paths are tried depth first; each place of it is visited once at most.
  std::vector<Place> places{{&traces_->root_, 0, 0}};
  while (!places.empty()) {
    const Place place = places.back();
    places.pop_back();
    if (place.operation == tape.size()) {
      if (to_end && !place.segment->end(place.index)) continue;
      segment_ = place.segment;
      index_ = place.index;
      return true;
    }
    const bool open = place.operation + 1 == tape.size() && tape.is_open();
    const size_t begin = tape.words_begin(place.operation);
    const size_t end = open ? tape.all_words().size() : tape.words_begin(place.operation + 1);
    const auto follow = [&](Segment* segment, size_t index) {
      if (open || equal_words(segment->output_words(index), tape.outputs(place.operation)))
        places.push_back({segment, index + 1, place.operation + 1});
      return false;
    };
    if (const auto* const exits = place.segment->side_exits(place.index))
      exits->each(tape, begin, end, [&](Segment* exit) { return follow(exit, 0); });
    if (place.index < place.segment->size() &&
        place.segment->matches(place.index, tape, begin, end))
      follow(place.segment, place.index);
  }
  return false;
}

std::vector<Cursor::Next> Cursor::next() const {
  std::vector<Next> next;
  if (index_ < segment_->size()) next.push_back({segment_->trace_.get(), segment_->from_ + index_});
  if (const Segment::SideExits* const exits = segment_->side_exits(index_))
    for (const auto& [hash, segment] : exits->by_words)
      next.push_back({segment->trace_.get(), segment->from_});
  return next;
}

bool Cursor::advance_equal(const CompiledTrace& trace, size_t operation) {
  const auto words = trace.tape().words(operation);
  const auto dynamic = trace.dynamic(operation);
  const auto same = [&](const Segment& segment, size_t index) {
    return equal_words(segment.words(index), words) && segment.dynamic(index).equals(dynamic);
  };
  if (index_ < segment_->size() && same(*segment_, index_)) {
    ++index_;
    return true;
  }
  const Segment::SideExits* const exits = segment_->side_exits(index_);
  if (!exits) return false;
  const auto [first, last] = exits->by_words.equal_range(hash_words(words));
  for (auto exit = first; exit != last; ++exit) {
    if (!same(*exit->second, 0)) continue;
    segment_ = exit->second.get();
    index_ = 1;
    return true;
  }
  return false;
}

void KnownTraces::insert(const std::shared_ptr<CompiledTrace>& trace,
                         std::optional<FlushReason> automatic) {
  const Tape& tape = trace->tape();
  Cursor cursor = start();
  size_t matched = 0;
  while (matched < tape.size() && cursor.advance_equal(*trace, matched)) {
    // Equal calls that returned other metadata: what the first trace says stays, this one is never
    // hot.
    if (!equal_words(cursor.output_words(), tape.outputs(matched))) return;
    ++matched;
  }
  if (matched < tape.size()) {
    auto made = std::make_unique<Segment>(trace, matched);
    Segment* const segment = made.get();
    cursor.segment_->place(cursor.index_).side_exits.add(std::move(made));
    cursor.segment_ = segment;
    cursor.index_ = tape.size() - matched;
  }
  Segment::End& end = cursor.segment_->place(cursor.index_).end;
  end.trace = trace;
  end.automatic = automatic;
  has_dynamic_scalars_ |= !trace->dynamic_scalars().empty();
}

void KnownTraces::forget_dropped_traces() {
  struct Kept {
    uint64_t last_use;
    std::shared_ptr<CompiledTrace> trace;
    std::optional<FlushReason> automatic;
  };
  std::vector<Kept> kept;
  bool is_whole = true;
  std::vector<const Segment*> segments{&root_};
  while (!segments.empty()) {
    const Segment* const segment = segments.back();
    segments.pop_back();
    for (const auto& place : segment->places_) {
      if (!place) continue;
      const auto& [trace, automatic, beyond] = place->end;
      if (trace && trace->is_dropped())
        is_whole = false;
      else if (trace)
        kept.push_back({trace->last_use(), trace, automatic});
      for (const auto& [hash, exit] : place->side_exits.by_words) segments.push_back(exit.get());
    }
  }
  if (is_whole) return;
  // Hashes may differ from process to process, uses do not.
  std::ranges::sort(kept, std::ranges::greater(), &Kept::last_use);
  *this = KnownTraces();
  for (const auto& [last_use, trace, automatic] : kept) insert(trace, automatic);
}

bool follows(const CompiledTrace& trace, const Tape& tape, size_t from) {
  if (tape.size() > trace.tape().size()) return false;
  for (size_t i = from; i < tape.size(); ++i) {
    const size_t end = i + 1 < tape.size() ? tape.words_begin(i + 1) : tape.all_words().size();
    if (!is_operation(trace, i, tape, tape.words_begin(i), end)) return false;
  }
  return true;
}

}  // namespace torch_lazy
