// The tape: the one primary form of a recording.
//
// Flat arrays of words. An operation's *argument words* hold everything a match must compare, so a
// match is one memcmp; its *output words* hold the metadata the outputs had when the operation ran
// for real. Operators are named by a hash of their qualified name, tensors by slots, and no word is
// a pointer: the same words serve matching, hashing, and (later) disk and bug reports.
//
// A *value* is a tensor with its metadata; a *storage* is the family of views it belongs to. Both
// are numbered in the order they first appear in a window, so the same program gets the same
// numbers. The metadata of a value never changes: an operation that changes a tensor's metadata in
// place makes a new value.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tape/operator_warnings.h"
#include "tape/source_location.h"

namespace torch_lazy {

struct OperatorInfo;

// Changed whenever the meaning of a word changes; part of every persistent hash.
constexpr uint32_t kTapeVersion = 5;

enum class Tag : uint8_t {
  kNone,        // None
  kUndefined,   // a Tensor that is not defined
  kValue,       // payload: value slot, already described in this window
  kInput,       // payload: value slot; described by the words that follow
  kCpuTensor,   // payload: value slot; a CPU tensor, snapshotted when deferred. aux: not contiguous
  kNumber,      // a wrapped Python number as 0-dim CPU tensor: aux is its dtype; 2 words of bits
  kInt,         // one word
  kDouble,      // one word of bits
  kBool,        // payload: 0 or 1
  kComplex,     // two words of bits
  kString,      // payload: length; the bytes, padded to words
  kDevice,      // payload: type << 8 | (index + 1)
  kGenerator,   // never deferred
  kIntList,     // payload: length; one word each
  kDoubleList,  // payload: length; one word each
  kBoolList,    // payload: length; one word each
  kList,        // payload: length; elements are arguments of their own
  kTensorList,  // as kList, elements are tensors
  kOptionalTensorList,
  kOffsets,  // payload: storage slot; after the arguments, see StorageOffsets
};

// A word: tag (8 bits), flags (8), aux (16), payload (32).
constexpr uint64_t make_word(Tag tag, uint32_t payload = 0, uint16_t aux = 0, uint8_t flags = 0) {
  return uint64_t(tag) | uint64_t(flags) << 8 | uint64_t(aux) << 16 | uint64_t(payload) << 32;
}
constexpr Tag word_tag(uint64_t word) {
  return Tag(word & 0xff);
}
constexpr uint8_t word_flags(uint64_t word) {
  return uint8_t(word >> 8);
}
constexpr uint16_t word_aux(uint64_t word) {
  return uint16_t(word >> 16);
}
constexpr uint32_t word_payload(uint64_t word) {
  return uint32_t(word >> 32);
}

// The head of a real number, a wrapped one too, whose bits are the next word.
constexpr bool is_real_number(uint64_t word) {
  return word_tag(word) == Tag::kDouble ||
         (word_tag(word) == Tag::kNumber && c10::ScalarType(word_aux(word)) == c10::kDouble);
}

// How many words the argument that begins at `at` has; of a list only its head, since the elements
// are arguments of their own.
inline size_t argument_size(c10::ArrayRef<uint64_t> words, size_t at) {
  const uint64_t header = words[at];
  const size_t payload = word_payload(header);
  switch (word_tag(header)) {
    case Tag::kNone:
    case Tag::kUndefined:
    case Tag::kValue:
    case Tag::kBool:
    case Tag::kDevice:
    case Tag::kGenerator:
    case Tag::kList:
    case Tag::kTensorList:
    case Tag::kOptionalTensorList:
      return 1;
    case Tag::kInt:
    case Tag::kDouble:
      return 2;
    case Tag::kNumber:
    case Tag::kComplex:
      return 3;
    case Tag::kInput:
    case Tag::kCpuTensor:
      return 5 + 2 * (words[at + 3] >> 32);
    case Tag::kString:
      return 1 + (payload + 7) / 8;
    case Tag::kIntList:
    case Tag::kDoubleList:
    case Tag::kBoolList:
      return 1 + payload;
    case Tag::kOffsets:
      return 4 + words[at + 1];
  }
  TORCH_INTERNAL_ASSERT(false, "unknown tag on the tape");
}

// Flags of a tensor as it is passed, beside the metadata of its value.
enum TensorFlag : uint8_t { kConj = 1, kNeg = 2, kWrappedNumber = 4 };

using Dims = c10::SmallVector<int64_t, 5>;

// What the tape knows of where inputs lie in their storage. Where a window only reads a storage, it
// does not matter: the same program may be given another part of it each time, a batch of a data
// set for instance, and is the same trace. What operations write has to be known relative to the
// other inputs over the storage, and some operators look at the offset itself.
enum class OffsetKind : uint8_t {
  kFirst,     // where the first input over the storage lies, anywhere
  kOther,     // elsewhere
  kRelative,  // in bytes from the first input over the storage
  kAbsolute,  // in bytes from the start of the storage
};

struct InputOffset {
  OffsetKind kind = OffsetKind::kFirst;
  int64_t bytes = 0;  // as the kind says; 0 where that leaves it open
};

// Metadata of a window's input value, decoded from a kInput or kCpuTensor argument.
struct InputMetadata {
  uint32_t value = 0;
  uint32_t storage = 0;  // meaningless for a CPU tensor
  bool cpu = false;
  bool first_of_storage = false;
  uint8_t flags = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  InputOffset offset;
  int64_t storage_bytes = 0;  // of a CPU tensor, and where the offset is absolute; else 0
  Dims sizes, strides;
};

// Where the inputs so far lie in a storage, on the tape behind the arguments of the first operation
// that needs it. Inputs that come later have the same kind.
struct StorageOffsets {
  uint32_t storage = 0;
  OffsetKind kind = OffsetKind::kRelative;  // or kAbsolute
  int64_t first = 0;                        // bytes, 0 where relative; of inputs that are kFirst
  int64_t storage_bytes = 0;                // 0 where relative
  std::vector<int64_t> others;              // bytes; of inputs that are kOther, in their order
};

// What an operation returned but for its sizes, in the order of its flattened tensor returns.
// `source` counts tensor arguments as they stand on the tape, list elements included, wrapped
// numbers and undefined ones not.
struct OutputHeader {
  enum class Kind : uint8_t {
    kUndefined,        // an undefined tensor
    kFresh,            // a new storage
    kAliasArgument,    // a new tensor on the storage of tensor argument `source`
    kAliasOutput,      // a new tensor on the storage of output `source`
    kArgument,         // tensor argument `source` itself, metadata unchanged
    kArgumentRebound,  // tensor argument `source` itself, now a new value
  };
  Kind kind = Kind::kUndefined;
  uint8_t flags = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  uint32_t source = 0;
  uint32_t value = 0;
  uint32_t storage = 0;
  int64_t storage_bytes = 0;  // 0 of a new view
  // Bytes: of a new view from the first element of its source, else from the start of the storage.
  int64_t offset = 0;
  bool is_view() const { return kind == Kind::kAliasArgument || kind == Kind::kAliasOutput; }
};

struct OutputMetadata : OutputHeader {
  Dims sizes, strides;
};

// What a reader of many outputs needs of each, without decoding its sizes.
struct OutputSummary {
  OutputMetadata::Kind kind;
  c10::ScalarType dtype;
  uint32_t source;
  uint32_t value;
};

class Tape {
 public:
  struct Entry {
    const OperatorInfo* op;
    uint32_t words_end;    // one past its last argument word
    uint32_t outputs_end;  // one past its last output word
    LocationId location;
    WarningsId warnings = kNoWarnings;  // what it warned of when it ran; no part of the hash
  };

  void begin(const OperatorInfo* op, LocationId location);
  void abandon();  // drops the entry that begin() opened
  void word(uint64_t value) { words_.push_back(value); }
  void string(std::string_view text);
  // `offset`, `bytes`: as of InputMetadata.
  void tensor_metadata(const c10::TensorImpl& impl, uint32_t storage, bool first,
                       InputOffset offset, int64_t bytes);
  // Of a tensor alone in its memory, without gaps; of an expanded dimension the stride is 0.
  void snapshot_metadata(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype);
  void offsets(const StorageOffsets& known);
  void output(const OutputMetadata& output);
  // `offset`, `storage_bytes`: as of OutputMetadata.
  void output(OutputMetadata::Kind kind, uint32_t source, const c10::TensorImpl& impl,
              int64_t offset, int64_t storage_bytes, uint8_t flags, uint32_t value,
              uint32_t storage);
  void copy_outputs(c10::ArrayRef<uint64_t> words);  // of an equal operation on another tape
  void warned(WarningsId warnings) { entries_.back().warnings = warnings; }  // the open one
  void end();                                                                // closes the entry

  void clear();
  bool empty() const { return entries_.empty(); }
  bool is_open() const { return open_; }
  size_t size() const { return entries_.size(); }
  const Entry& entry(size_t index) const { return entries_[index]; }
  c10::ArrayRef<Entry> entries() const { return entries_; }
  c10::ArrayRef<uint64_t> words(size_t index) const;    // argument words of an operation
  c10::ArrayRef<uint64_t> outputs(size_t index) const;  // output words of an operation
  // Argument words of the entry that begin() opened.
  c10::ArrayRef<uint64_t> open_words() const;
  // Argument words of all operations, the open one included, and where those of one begin.
  c10::ArrayRef<uint64_t> all_words() const { return words_; }
  size_t words_begin(size_t index) const { return index == 0 ? 0 : entries_[index - 1].words_end; }
  Tape prefix(size_t operations) const;
  // Appends operations [from, to) of another tape; slots must be of the same numbering.
  void append(const Tape& other, size_t from, size_t to);

  uint32_t values = 0;    // value slots given out
  uint32_t storages = 0;  // storage slots given out

  // 128-bit XXH3 over every word, argument and output.
  struct Hash {
    uint64_t low = 0, high = 0;
    bool operator==(const Hash& other) const { return low == other.low && high == other.high; }
  };
  Hash hash() const;
  // The same with these of all_words() taken as 0. Leaves the tape as it was.
  Hash hash_without(c10::ArrayRef<uint32_t> words);
  // Of the operators alone: which ones stand one behind another, and not how often, so that a loop
  // has the same one whatever its number of rounds.
  uint64_t hash_of_operators() const;
  // Sets one of all_words() to 0.
  void clear_word(size_t index) { words_[index] = 0; }
  bool same_words(const Tape& other) const;

 private:
  // Without room of its own. Not a std::vector, which sets new words before they are filled in.
  using Words = c10::SmallVector<uint64_t, 0>;

  // Appends `count` words to be filled in. Out of line: recording code is kept small, since a
  // script that does not repeat runs it with cold caches.
  static uint64_t* extend(Words& words, size_t count);

  Words words_;
  Words outputs_;
  std::vector<Entry> entries_;
  bool open_ = false;
};

struct TapeHasher {
  size_t operator()(const Tape::Hash& hash) const { return hash.low; }
};

std::vector<OutputMetadata> decode_outputs(c10::ArrayRef<uint64_t> words);
void summarize_outputs(c10::ArrayRef<uint64_t> words, c10::SmallVectorImpl<OutputSummary>& outputs);

// One argument of an operation: a value slot, a constant, or a list of arguments.
struct Operand {
  // A kScalarList holds numbers that are not all constant; on a tape they all are.
  enum class Kind : uint8_t { kValue, kConstant, kTensorList, kOptionalTensorList, kScalarList };
  Kind kind = Kind::kConstant;
  uint8_t flags = 0;  // of a kValue: conj, neg and wrapped-number bits it is passed with
  uint32_t value = 0;
  c10::IValue constant;  // a wrapped number is a 0-dim CPU tensor here; None for None and undefined
  // Of a floating-point constant on a tape: where its bits stand among the operation's words, and
  // of no other operand.
  uint32_t number_word = 0;
  std::vector<Operand> elements;  // of a constant list too, where it is one of Scalars
};

// Decodes the argument words of an operation; inputs it introduces are appended to `inputs`, and
// what it makes known of offsets to `offsets`, either of which may be null.
std::vector<Operand> decode_operands(c10::ArrayRef<uint64_t> words,
                                     std::vector<InputMetadata>* inputs,
                                     std::vector<StorageOffsets>* offsets = nullptr);

}  // namespace torch_lazy
