#include "tape/tape.h"

#include <c10/core/TensorImpl.h>
#include <c10/util/accumulate.h>
#include <c10/util/strides.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

// Returns where the next word goes.
uint64_t* put_dims(uint64_t* to, c10::IntArrayRef dims) {
  for (const int64_t dim : dims) *to++ = uint64_t(dim);
  return to;
}

uint64_t output_header(OutputMetadata::Kind kind, uint8_t flags, c10::ScalarType dtype, size_t dims,
                       uint32_t source) {
  return uint64_t(kind) | uint64_t(flags) << 8 | uint64_t(dtype) << 16 | uint64_t(dims) << 24 |
         uint64_t(source) << 32;
}

}  // namespace

void Tape::begin(const OperatorInfo* op, LocationId location) {
  entries_.push_back({op, uint32_t(words_.size()), uint32_t(outputs_.size()), location});
  words_.push_back(op->id);
  open_ = true;
}

void Tape::abandon() {
  if (!open_) return;
  entries_.pop_back();
  words_.resize(entries_.empty() ? 0 : entries_.back().words_end);
  outputs_.resize(entries_.empty() ? 0 : entries_.back().outputs_end);
  open_ = false;
}

void Tape::end() {
  entries_.back().words_end = uint32_t(words_.size());
  entries_.back().outputs_end = uint32_t(outputs_.size());
  open_ = false;
}

void Tape::string(std::string_view text) {
  word(make_word(Tag::kString, uint32_t(text.size())));
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + i, std::min<size_t>(8, text.size() - i));
    word(bytes);
  }
}

uint64_t* Tape::extend(Words& words, size_t count) {
  const size_t size = words.size();
  words.resize_for_overwrite(size + count);
  return words.data() + size;
}

void Tape::tensor_metadata(const c10::TensorImpl& impl, uint32_t storage, bool first,
                           InputOffset offset, int64_t bytes) {
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  uint64_t* to = extend(words_, 4 + 2 * sizes.size());
  *to++ = uint64_t(storage) | uint64_t(first) << 32 | uint64_t(offset.kind) << 40;
  *to++ = uint64_t(bytes);
  *to++ = uint64_t(c10::typeMetaToScalarType(impl.dtype())) | uint64_t(sizes.size()) << 32;
  *to++ = uint64_t(offset.bytes);
  put_dims(put_dims(to, sizes), strides);
}

void Tape::snapshot_metadata(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                             c10::ScalarType dtype) {
  auto bytes = int64_t(c10::elementSize(dtype));
  for (size_t i = 0; i < sizes.size(); ++i)
    if (strides[i] != 0 || sizes[i] == 0) bytes *= sizes[i];
  uint64_t* to = extend(words_, 4 + 2 * sizes.size());
  *to++ = uint64_t(1) << 32;
  *to++ = uint64_t(bytes);
  *to++ = uint64_t(dtype) | uint64_t(sizes.size()) << 32;
  *to++ = 0;
  put_dims(put_dims(to, sizes), strides);
}

void Tape::offsets(const StorageOffsets& known) {
  uint64_t* to = extend(words_, 4 + known.others.size());
  *to++ = make_word(Tag::kOffsets, known.storage, 0, uint8_t(known.kind));
  *to++ = uint64_t(known.others.size());
  *to++ = uint64_t(known.first);
  *to++ = uint64_t(known.storage_bytes);
  put_dims(to, known.others);
}

void Tape::output(const OutputMetadata& output) {
  *extend(outputs_, 1) =
      output_header(output.kind, output.flags, output.dtype, output.sizes.size(), output.source);
  if (output.kind == OutputMetadata::Kind::kUndefined ||
      output.kind == OutputMetadata::Kind::kArgument)
    return;
  uint64_t* to = extend(outputs_, 3 + 2 * output.sizes.size());
  *to++ = uint64_t(output.value) | uint64_t(output.storage) << 32;
  *to++ = uint64_t(output.storage_bytes);
  *to++ = uint64_t(output.offset);
  put_dims(put_dims(to, output.sizes), output.strides);
}

void Tape::output(OutputMetadata::Kind kind, uint32_t source, const c10::TensorImpl& impl,
                  int64_t offset, int64_t storage_bytes, uint8_t flags, uint32_t value,
                  uint32_t storage) {
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  uint64_t* to = extend(outputs_, 4 + 2 * sizes.size());
  *to++ = output_header(kind, flags, c10::typeMetaToScalarType(impl.dtype()), sizes.size(), source);
  *to++ = uint64_t(value) | uint64_t(storage) << 32;
  *to++ = uint64_t(storage_bytes);
  *to++ = uint64_t(offset);
  put_dims(put_dims(to, sizes), strides);
}

void Tape::copy_outputs(c10::ArrayRef<uint64_t> words) {
  outputs_.append(words.begin(), words.end());
}

void Tape::clear() {
  words_.clear();
  outputs_.clear();
  entries_.clear();
  values = storages = 0;
  open_ = false;
}

c10::ArrayRef<uint64_t> Tape::words(size_t index) const {
  const size_t begin = words_begin(index);
  return {words_.data() + begin, entries_[index].words_end - begin};
}

c10::ArrayRef<uint64_t> Tape::outputs(size_t index) const {
  const size_t begin = index == 0 ? 0 : entries_[index - 1].outputs_end;
  return {outputs_.data() + begin, entries_[index].outputs_end - begin};
}

c10::ArrayRef<uint64_t> Tape::open_words() const {
  const size_t begin = words_begin(entries_.size() - 1);
  return {words_.data() + begin, words_.size() - begin};
}

Tape Tape::prefix(size_t operations) const {
  Tape tape;
  if (operations > 0) {  // it may be kept for long
    tape.words_.reserve(entry(operations - 1).words_end);
    tape.outputs_.reserve(entry(operations - 1).outputs_end);
    tape.entries_.reserve(operations);
  }
  tape.append(*this, 0, operations);
  tape.values = values;
  tape.storages = storages;
  return tape;
}

void Tape::append(const Tape& other, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    const auto words = other.words(i), outputs = other.outputs(i);
    words_.append(words.begin(), words.end());
    outputs_.append(outputs.begin(), outputs.end());
    const Entry& entry = other.entry(i);
    entries_.push_back({entry.op, uint32_t(words_.size()), uint32_t(outputs_.size()),
                        entry.location, entry.warnings});
  }
}

Tape::Hash Tape::hash() const {
  const XXH128_hash_t arguments =
      XXH3_128bits_withSeed(words_.data(), words_.size() * sizeof(uint64_t), kTapeVersion);
  const XXH128_hash_t both =
      XXH3_128bits_withSeed(outputs_.data(), outputs_.size() * sizeof(uint64_t), arguments.low64);
  return {both.low64 ^ arguments.high64, both.high64};
}

// Of a loop from two rounds on: one alone has no step from its last operator to its first.
uint64_t Tape::hash_of_operators() const {
  std::set<std::array<uint64_t, 2>> pairs;
  uint64_t before = 0;
  for (const Entry& entry : entries_) {
    pairs.insert({before, entry.op->id});
    before = entry.op->id;
  }
  std::vector<uint64_t> ids;
  ids.reserve(2 * pairs.size());
  for (const auto& pair : pairs) ids.insert(ids.end(), pair.begin(), pair.end());
  return XXH3_64bits(ids.data(), ids.size() * sizeof(uint64_t));
}

Tape::Hash Tape::hash_without(c10::ArrayRef<uint32_t> words) {
  if (words.empty()) return hash();
  std::vector<uint64_t> kept;
  kept.reserve(words.size());
  for (const uint32_t word : words) kept.push_back(std::exchange(words_[word], 0));
  const Hash result = hash();
  for (size_t i = 0; i < words.size(); ++i) words_[words[i]] = kept[i];
  return result;
}

bool Tape::same_words(const Tape& other) const {
  return words_ == other.words_ && outputs_ == other.outputs_;
}

}  // namespace torch_lazy
