#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>

#include <bit>
#include <cstring>
#include <utility>

#include "tape/tape.h"

namespace torch_lazy {
namespace {

// Reads words in order; the tape is our own, so running past the end is a bug, not bad input.
class TapeReader {
 public:
  explicit TapeReader(c10::ArrayRef<uint64_t> words) : words_(words) {}
  bool done() const { return at_ == words_.size(); }
  bool at_offsets() const { return word_tag(words_[at_]) == Tag::kOffsets; }
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

Operand constant(c10::IValue value, size_t number_word = 0) {
  Operand operand;
  operand.constant = std::move(value);
  operand.number_word = uint32_t(number_word);
  return operand;
}

InputMetadata decode_input(uint64_t header, TapeReader& reader) {
  InputMetadata input;
  input.value = word_payload(header);
  input.cpu = word_tag(header) == Tag::kCpuTensor;
  input.flags = word_flags(header);
  const uint64_t where = reader.next();
  input.storage = uint32_t(where);
  input.first_of_storage = (where >> 32) & 1;
  input.offset.kind = OffsetKind(where >> 40);
  input.storage_bytes = int64_t(reader.next());
  const uint64_t shape = reader.next();
  input.dtype = c10::ScalarType(shape & 0xff);
  input.offset.bytes = int64_t(reader.next());
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

Operand wrapped_number(c10::ScalarType dtype, TapeReader& reader) {
  const size_t word = dtype == c10::ScalarType::Double ? reader.at() : 0;
  const uint64_t low = reader.next(), high = reader.next();
  return constant(number_tensor(dtype, low, high), word);
}

Operand decode_operand(TapeReader& reader, std::vector<InputMetadata>* inputs);

Operand scalar_list(uint32_t size, TapeReader& reader, std::vector<InputMetadata>* inputs) {
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

Operand tensor_list(Operand::Kind kind, uint32_t size, TapeReader& reader,
                    std::vector<InputMetadata>* inputs) {
  Operand operand;
  operand.kind = kind;
  for (uint32_t i = 0; i < size; ++i) operand.elements.push_back(decode_operand(reader, inputs));
  return operand;
}

StorageOffsets decode_offsets(uint64_t header, TapeReader& reader) {
  StorageOffsets offsets;
  offsets.storage = word_payload(header);
  offsets.kind = OffsetKind(word_flags(header));
  const uint64_t others = reader.next();
  offsets.first = int64_t(reader.next());
  offsets.storage_bytes = int64_t(reader.next());
  for (uint64_t i = 0; i < others; ++i) offsets.others.push_back(int64_t(reader.next()));
  return offsets;
}

Operand decode_operand(TapeReader& reader, std::vector<InputMetadata>* inputs) {
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
    case Tag::kOffsets:
      break;  // stands behind all arguments
  }
  TORCH_INTERNAL_ASSERT(false, "unknown tag on the tape");
}

}  // namespace

std::vector<OutputMetadata> decode_outputs(c10::ArrayRef<uint64_t> words) {
  std::vector<OutputMetadata> outputs;
  TapeReader reader(words);
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
                                     std::vector<InputMetadata>* inputs,
                                     std::vector<StorageOffsets>* offsets) {
  TapeReader reader(words);
  reader.next();  // the operator
  std::vector<Operand> operands;
  while (!reader.done() && !reader.at_offsets()) operands.push_back(decode_operand(reader, inputs));
  while (!reader.done()) {
    const uint64_t header = reader.next();
    StorageOffsets known = decode_offsets(header, reader);
    if (offsets) offsets->push_back(std::move(known));
  }
  return operands;
}

}  // namespace torch_lazy
