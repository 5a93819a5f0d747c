// Known traces: what recordings are matched against.
//
// A tree of segments. A segment is a run of operations of one compiled trace; at any index it may
// have exits to other segments (a branch that was learnt) and ends (a window was cut there). Owned
// by one recorder and only touched by the thread that holds the recording lock.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/compiled_trace.h"
#include "trace/tape.h"

namespace torch_lazy {

class Segment {
 public:
  // An end: a window was cut after the operations before it.
  struct End {
    std::shared_ptr<CompiledTrace> trace;
    // Cut as soon as it is reached (a limit or a period), not only when something asks for it.
    bool automatic = false;
  };

  // Operations [from, size) of the trace's tape. The root of a tree is an empty segment.
  Segment() : exits_(1), ends_(1) {}
  Segment(std::shared_ptr<CompiledTrace> trace, size_t from);

  size_t size() const { return exits_.size() - 1; }
  c10::ArrayRef<uint64_t> words(size_t index) const { return trace_->tape().words(from_ + index); }
  c10::ArrayRef<uint64_t> output_words(size_t index) const {
    return trace_->tape().outputs(from_ + index);
  }
  const std::vector<OutputMetadata>& outputs(size_t index) const {
    return trace_->outputs(from_ + index);
  }
  const End* end(size_t index) const { return ends_[index].trace ? &ends_[index] : nullptr; }

 private:
  friend class KnownTraces;
  friend class Cursor;
  std::shared_ptr<CompiledTrace> trace_;
  size_t from_ = 0;
  // Where recordings leave the segment. Few, but at the start of a tree or of a loop whose numbers
  // change there can be thousands: by hash of the first operation's words.
  struct Exits {
    std::unordered_multimap<uint64_t, std::unique_ptr<Segment>> by_words;
    Segment* find(c10::ArrayRef<uint64_t> words) const;
  };
  std::vector<Exits> exits_;  // by index, size() + 1 of them
  std::vector<End> ends_;     // by index, size() + 1 of them
};

// A place in the tree: `index` operations of `segment` have matched.
class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(Segment* root) : segment_(root) {}

  // Steps over an operation with these argument words; false and unmoved when none is known here.
  bool advance(c10::ArrayRef<uint64_t> words);
  // The operation stepped over last.
  const std::vector<OutputMetadata>& outputs() const { return segment_->outputs(index_ - 1); }
  c10::ArrayRef<uint64_t> output_words() const { return segment_->output_words(index_ - 1); }
  const Segment::End* end() const { return segment_->end(index_); }
  bool at_leaf() const {
    return index_ == segment_->size() && segment_->exits_[index_].by_words.empty();
  }

 private:
  friend class KnownTraces;
  Segment* segment_ = nullptr;
  size_t index_ = 0;
};

class KnownTraces {
 public:
  // Makes the trace matchable from the root on.
  void insert(const std::shared_ptr<CompiledTrace>& trace, bool automatic_end);
  bool empty() const { return root_.exits_[0].by_words.empty(); }
  Cursor start() { return Cursor(&root_); }

 private:
  Segment root_;
};

}  // namespace torch_lazy
