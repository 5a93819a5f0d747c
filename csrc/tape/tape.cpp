#include "tape/tape.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/accumulate.h>
#include <c10/util/strides.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <utility>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

// Reads words in order; the tape is our own, so running past the end is a bug, not bad input.
class Reader {
 public:
  explicit Reader(c10::ArrayRef<uint64_t> words) : words_(words) {}
  bool done() const { return at_ == words_.size(); }
  uint64_t next() {
    TORCH_INTERNAL_ASSERT(at_ < words_.size());
    return words_[at_++];
  }
  Dims dims(size_t count) {
    Dims dims;
    for (size_t i = 0; i < count; ++i) dims.push_back(int64_t(next()));
    return dims;
  }
  std::string string(size_t length) {
    std::string text(length, '\0');
    for (size_t i = 0; i < length; i += 8) {
      const uint64_t word = next();
      std::memcpy(text.data() + i, &word, std::min<size_t>(8, length - i));
    }
    return text;
  }
  size_t at() const { return at_; }

 private:
  c10::ArrayRef<uint64_t> words_;
  size_t at_ = 0;
};

// A wrapped number: 0-dim, with the dtype the Python number had.
at::Tensor number_tensor(c10::ScalarType dtype, uint64_t low, uint64_t high) {
  at::Tensor tensor = at::empty({}, at::TensorOptions(dtype).device(c10::kCPU));
  const uint64_t bits[2] = {low, high};
  std::memcpy(tensor.mutable_data_ptr(), bits, tensor.itemsize());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

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

Operand constant(c10::IValue value, size_t number_word = 0) {
  Operand operand;
  operand.constant = std::move(value);
  operand.number_word = uint32_t(number_word);
  return operand;
}

InputMetadata decode_input(uint64_t header, Reader& reader) {
  InputMetadata input;
  input.value = word_payload(header);
  input.cpu = word_tag(header) == Tag::kCpuTensor;
  input.flags = word_flags(header);
  const uint64_t where = reader.next();
  input.storage = uint32_t(where);
  input.first_of_storage = (where >> 32) & 1;
  input.storage_bytes = int64_t(reader.next());
  const uint64_t shape = reader.next();
  input.dtype = c10::ScalarType(shape & 0xff);
  input.offset = int64_t(reader.next());
  input.sizes = reader.dims(shape >> 32);
  input.strides = reader.dims(shape >> 32);
  return input;
}

template <typename Element, typename Next>
c10::List<Element> list_of(uint32_t size, const Next& next) {
  c10::List<Element> list;
  list.reserve(size);
  for (uint32_t i = 0; i < size; ++i) list.push_back(next());
  return list;
}

Operand wrapped_number(c10::ScalarType dtype, Reader& reader) {
  const size_t word = dtype == c10::ScalarType::Double ? reader.at() : 0;
  const uint64_t low = reader.next(), high = reader.next();
  return constant(number_tensor(dtype, low, high), word);
}

Operand decode_operand(Reader& reader, std::vector<InputMetadata>* inputs);

Operand scalar_list(uint32_t size, Reader& reader, std::vector<InputMetadata>* inputs) {
  c10::impl::GenericList list(c10::NumberType::get());
  std::vector<Operand> elements;
  for (uint32_t i = 0; i < size; ++i) {
    elements.push_back(decode_operand(reader, inputs));
    list.push_back(elements.back().constant);
  }
  Operand operand = constant(list);
  operand.elements = std::move(elements);
  return operand;
}

Operand tensor_list(Operand::Kind kind, uint32_t size, Reader& reader,
                    std::vector<InputMetadata>* inputs) {
  Operand operand;
  operand.kind = kind;
  for (uint32_t i = 0; i < size; ++i) operand.elements.push_back(decode_operand(reader, inputs));
  return operand;
}

Operand decode_operand(Reader& reader, std::vector<InputMetadata>* inputs) {
  const uint64_t header = reader.next();
  const uint32_t payload = word_payload(header);
  switch (word_tag(header)) {
    case Tag::kNone:
    case Tag::kUndefined:
    case Tag::kGenerator:
      return {};
    case Tag::kInput:
    case Tag::kCpuTensor: {
      InputMetadata input = decode_input(header, reader);
      if (inputs) inputs->push_back(std::move(input));
      [[fallthrough]];
    }
    case Tag::kValue: {
      Operand operand;
      operand.kind = Operand::Kind::kValue;
      operand.flags = word_flags(header);
      operand.value = payload;
      return operand;
    }
    case Tag::kNumber:
      return wrapped_number(c10::ScalarType(word_aux(header)), reader);
    case Tag::kInt:
      return constant(int64_t(reader.next()));
    case Tag::kDouble: {
      const size_t word = reader.at();
      return constant(std::bit_cast<double>(reader.next()), word);
    }
    case Tag::kBool:
      return constant(payload != 0);
    case Tag::kComplex: {
      const double real = std::bit_cast<double>(reader.next()),
                   imaginary = std::bit_cast<double>(reader.next());
      return constant(c10::complex<double>(real, imaginary));
    }
    case Tag::kString:
      return constant(reader.string(payload));
    case Tag::kDevice:
      return constant(
          c10::Device(c10::DeviceType(payload >> 8), c10::DeviceIndex(int(payload & 0xff) - 1)));
    case Tag::kIntList:
      return constant(list_of<int64_t>(payload, [&] { return int64_t(reader.next()); }));
    case Tag::kDoubleList:
      return constant(
          list_of<double>(payload, [&] { return std::bit_cast<double>(reader.next()); }));
    case Tag::kBoolList:
      return constant(list_of<bool>(payload, [&] { return reader.next() != 0; }));
    case Tag::kList:
      return scalar_list(payload, reader, inputs);
    case Tag::kTensorList:
      return tensor_list(Operand::Kind::kTensorList, payload, reader, inputs);
    case Tag::kOptionalTensorList:
      return tensor_list(Operand::Kind::kOptionalTensorList, payload, reader, inputs);
  }
  TORCH_INTERNAL_ASSERT(false, "unknown tag on the tape");
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

uint64_t* Tape::extend(std::vector<uint64_t>& words, size_t count) {
  const size_t size = words.size();
  words.resize(size + count);
  return words.data() + size;
}

void Tape::tensor_metadata(const c10::TensorImpl& impl, uint32_t storage, bool first,
                           int64_t bytes) {
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  uint64_t* to = extend(words_, 4 + 2 * sizes.size());
  *to++ = uint64_t(storage) | uint64_t(first) << 32;
  *to++ = uint64_t(bytes);
  *to++ = uint64_t(c10::typeMetaToScalarType(impl.dtype())) | uint64_t(sizes.size()) << 32;
  *to++ = uint64_t(impl.storage_offset());
  put_dims(put_dims(to, sizes), strides);
}

void Tape::contiguous_metadata(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  uint64_t* to = extend(words_, 4 + 2 * sizes.size());
  *to++ = uint64_t(1) << 32;
  *to++ = uint64_t(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
  *to++ = uint64_t(dtype) | uint64_t(sizes.size()) << 32;
  *to++ = 0;
  put_dims(put_dims(to, sizes), c10::contiguous_strides(sizes));
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
                  int64_t storage_bytes, uint8_t flags, uint32_t value, uint32_t storage) {
  const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  uint64_t* to = extend(outputs_, 4 + 2 * sizes.size());
  *to++ = output_header(kind, flags, c10::typeMetaToScalarType(impl.dtype()), sizes.size(), source);
  *to++ = uint64_t(value) | uint64_t(storage) << 32;
  *to++ = uint64_t(storage_bytes);
  *to++ = uint64_t(impl.storage_offset());
  put_dims(put_dims(to, sizes), strides);
}

void Tape::copy_outputs(c10::ArrayRef<uint64_t> words) {
  outputs_.insert(outputs_.end(), words.begin(), words.end());
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
  tape.append(*this, 0, operations);
  tape.values = values;
  tape.storages = storages;
  return tape;
}

void Tape::append(const Tape& other, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    const auto words = other.words(i), outputs = other.outputs(i);
    words_.insert(words_.end(), words.begin(), words.end());
    outputs_.insert(outputs_.end(), outputs.begin(), outputs.end());
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

std::vector<OutputMetadata> decode_outputs(c10::ArrayRef<uint64_t> words) {
  std::vector<OutputMetadata> outputs;
  Reader reader(words);
  while (!reader.done()) {
    OutputMetadata output;
    const uint64_t header = reader.next();
    output.kind = OutputMetadata::Kind(header & 0xff);
    output.flags = uint8_t(header >> 8);
    output.dtype = c10::ScalarType((header >> 16) & 0xff);
    output.source = uint32_t(header >> 32);
    if (output.kind != OutputMetadata::Kind::kUndefined &&
        output.kind != OutputMetadata::Kind::kArgument) {
      const uint64_t slots = reader.next();
      output.value = uint32_t(slots);
      output.storage = uint32_t(slots >> 32);
      output.storage_bytes = int64_t(reader.next());
      output.offset = int64_t(reader.next());
      output.sizes = reader.dims((header >> 24) & 0xff);
      output.strides = reader.dims((header >> 24) & 0xff);
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

void summarize_outputs(c10::ArrayRef<uint64_t> words,
                       c10::SmallVectorImpl<OutputSummary>& outputs) {
  for (size_t at = 0; at < words.size();) {
    const uint64_t header = words[at];
    const auto kind = OutputMetadata::Kind(header & 0xff);
    const bool described =
        kind != OutputMetadata::Kind::kUndefined && kind != OutputMetadata::Kind::kArgument;
    outputs.push_back({kind, c10::ScalarType((header >> 16) & 0xff), uint32_t(header >> 32),
                       described ? uint32_t(words[at + 1]) : 0});
    at += described ? 4 + 2 * ((header >> 24) & 0xff) : 1;
  }
}

std::vector<Operand> decode_operands(c10::ArrayRef<uint64_t> words,
                                     std::vector<InputMetadata>* inputs) {
  Reader reader(words);
  reader.next();  // the operator
  std::vector<Operand> operands;
  while (!reader.done()) operands.push_back(decode_operand(reader, inputs));
  return operands;
}

}  // namespace torch_lazy
