#include "tape/signature.h"

#include <c10/util/hash.h>

#include <algorithm>

#include "ops/operator_info.h"
#include "tape/dynamic_scalars.h"

namespace torch_lazy {
namespace {

class Mixer {
 public:
  void add(uint64_t word) { hash_ = (hash_ ^ word) * kPrime ^ (hash_ >> 29); }
  void add(c10::ArrayRef<uint64_t> words) {
    for (const uint64_t word : words) add(word);
  }
  uint64_t hash() const { return hash_; }

 private:
  static constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ull;
  uint64_t hash_ = kPrime;
};

// The arguments, one bit each, for which another number would make the operation no other one: it
// may be a dynamic scalar.
uint32_t ignored_numbers(const OperatorInfo& op, c10::ArrayRef<uint64_t> outputs) {
  if (op.dynamic_scalar_arguments == 0) return 0;
  c10::SmallVector<OutputSummary, 4> summaries;
  summarize_outputs(outputs, summaries);
  const bool may_be_dynamic = std::ranges::all_of(summaries, [](const OutputSummary& output) {
    return output.kind == OutputMetadata::Kind::kUndefined ||
           output.kind == OutputMetadata::Kind::kArgument || may_have_dynamic_scalars(output.dtype);
  });
  return may_be_dynamic ? op.dynamic_scalar_arguments : 0;
}

// Hashes of what values look like, by slot.
using Looks = std::vector<uint64_t>;

uint64_t look(c10::ScalarType dtype, c10::ArrayRef<uint64_t> sizes_and_strides) {
  Mixer mixer;
  mixer.add(uint64_t(dtype));
  mixer.add(sizes_and_strides);
  return mixer.hash();
}

// Whose elements follow it.
bool is_list(Tag tag) {
  return tag == Tag::kList || tag == Tag::kTensorList || tag == Tag::kOptionalTensorList;
}

// Argument words of one operation, from its first argument on, without the numbers of those that
// have a bit in `ignored`. With `looks` tensors are told by these, and those of inputs are added to
// them.
void add_arguments(Mixer& mixer, c10::ArrayRef<uint64_t> words, uint32_t ignored, Looks* looks) {
  size_t elements = 0;  // to come, of a list, whose bit they share
  for (size_t at = 0; at < words.size();) {
    const uint64_t word = words[at];
    const uint64_t without_payload = word & 0xffffffff;
    const size_t size = argument_size(words, at);
    switch (word_tag(word)) {
      case Tag::kOffsets:  // behind all arguments
        return;
      case Tag::kValue:
        mixer.add(looks ? word_flags(word) : without_payload);
        // A tensor that another thread writes meanwhile may have any slot.
        if (looks && word_payload(word) < looks->size()) mixer.add((*looks)[word_payload(word)]);
        break;
      case Tag::kInput:
      case Tag::kCpuTensor:
        // Storage slot, bytes, dtype and dimensions, offset; then sizes and strides.
        if (looks) {
          uint64_t& known = (*looks)[word_payload(word)];
          known = look(c10::ScalarType(words[at + 3] & 0xff), words.slice(at + 5, size - 5));
          mixer.add(word_flags(word));
          mixer.add(known);
          break;
        }
        mixer.add(without_payload);
        mixer.add(words[at + 3]);
        mixer.add(words.slice(at + 5, size - 5));
        break;
      default:
        mixer.add(words.slice(at, (ignored & 1) && is_real_number(word) ? 1 : size));
    }
    at += size;
    if (elements > 0) --elements;
    if (is_list(word_tag(word))) elements = word_payload(word);
    if (elements == 0) ignored >>= 1;
  }
}

void add_results(Mixer& mixer, c10::ArrayRef<uint64_t> words, Looks* looks) {
  for (size_t at = 0; at < words.size();) {
    const uint64_t header = words[at];
    const auto kind = OutputMetadata::Kind(header & 0xff);
    mixer.add(header);
    ++at;
    if (kind == OutputMetadata::Kind::kUndefined || kind == OutputMetadata::Kind::kArgument)
      continue;
    // Slots, bytes, offset; then sizes and strides.
    const size_t dims = (header >> 24) & 0xff;
    const auto sizes_and_strides = words.slice(at + 3, 2 * dims);
    mixer.add(sizes_and_strides);
    if (looks) {
      const uint32_t value = uint32_t(words[at]);
      (*looks)[value] = look(c10::ScalarType((header >> 16) & 0xff), sizes_and_strides);
    }
    at += 3 + 2 * dims;
  }
}

uint64_t signature(const Tape& tape, size_t operation, Looks* looks) {
  Mixer mixer;
  const c10::ArrayRef<uint64_t> words = tape.words(operation);
  mixer.add(words.front());  // the operator
  mixer.add(uint64_t(tape.entry(operation).location));
  add_arguments(mixer, words.slice(1),
                ignored_numbers(*tape.entry(operation).op, tape.outputs(operation)), looks);
  add_results(mixer, tape.outputs(operation), looks);
  return mixer.hash();
}

}  // namespace

uint64_t signature(const Tape& tape, size_t operation) {
  return signature(tape, operation, nullptr);
}

std::vector<uint64_t> signatures_of_calls(const Tape& tape) {
  Looks looks(tape.values);
  std::vector<uint64_t> signatures;
  signatures.reserve(tape.size());
  for (size_t i = 0; i < tape.size(); ++i) signatures.push_back(signature(tape, i, &looks));
  return signatures;
}

uint64_t line_signature(const Tape& tape, size_t operation) {
  return c10::get_hash(tape.entry(operation).op, tape.entry(operation).location);
}

uint64_t lines_signature(const Tape& tape, size_t end, size_t operations) {
  uint64_t hash = operations;
  for (size_t i = end - operations; i < end; ++i)
    hash = c10::hash_combine(hash, line_signature(tape, i));
  return hash;
}

}  // namespace torch_lazy
