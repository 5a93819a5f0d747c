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

// Whether another number would make the operation no other one: it may be a dynamic scalar.
bool ignores_numbers(const OperatorInfo& op, c10::ArrayRef<uint64_t> outputs) {
  if (op.dynamic_scalar_arguments == 0) return false;
  c10::SmallVector<OutputSummary, 4> summaries;
  summarize_outputs(outputs, summaries);
  return std::ranges::all_of(summaries, [](const OutputSummary& output) {
    return output.kind == OutputMetadata::Kind::kUndefined ||
           output.kind == OutputMetadata::Kind::kArgument || may_have_dynamic_scalars(output.dtype);
  });
}

// Argument words of one operation, from its first argument on.
void add_arguments(Mixer& mixer, c10::ArrayRef<uint64_t> words, bool without_numbers) {
  for (size_t at = 0; at < words.size();) {
    const uint64_t word = words[at];
    const uint64_t without_payload = word & 0xffffffff;
    const size_t size = argument_size(words, at);
    switch (word_tag(word)) {
      case Tag::kOffsets:  // behind all arguments
        return;
      case Tag::kValue:
        mixer.add(without_payload);
        break;
      case Tag::kInput:
      case Tag::kCpuTensor:
        // Storage slot, bytes, dtype and dimensions, offset; then sizes and strides.
        mixer.add(without_payload);
        mixer.add(words[at + 3]);
        mixer.add(words.slice(at + 5, size - 5));
        break;
      default:
        mixer.add(words.slice(at, without_numbers && is_real_number(word) ? 1 : size));
    }
    at += size;
  }
}

void add_results(Mixer& mixer, c10::ArrayRef<uint64_t> words) {
  for (size_t at = 0; at < words.size();) {
    const uint64_t header = words[at];
    const auto kind = OutputMetadata::Kind(header & 0xff);
    mixer.add(header);
    ++at;
    if (kind == OutputMetadata::Kind::kUndefined || kind == OutputMetadata::Kind::kArgument)
      continue;
    // Slots, bytes, offset; then sizes and strides.
    const size_t dims = (header >> 24) & 0xff;
    mixer.add(words.slice(at + 3, 2 * dims));
    at += 3 + 2 * dims;
  }
}

}  // namespace

uint64_t signature(const Tape& tape, size_t operation) {
  Mixer mixer;
  const c10::ArrayRef<uint64_t> words = tape.words(operation);
  mixer.add(words.front());  // the operator
  mixer.add(uint64_t(tape.entry(operation).location));
  add_arguments(mixer, words.slice(1),
                ignores_numbers(*tape.entry(operation).op, tape.outputs(operation)));
  add_results(mixer, tape.outputs(operation));
  return mixer.hash();
}

uint64_t line_signature(const Tape& tape, size_t operation) {
  return c10::get_hash(tape.entry(operation).op, tape.entry(operation).location);
}

}  // namespace torch_lazy
