#include "trace/guard_failure.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

// An operation as a reader sees it: its arguments one by one, as text.
struct DescribedOperation {
  const OperatorInfo* op;
  LocationId location;
  std::vector<std::string> arguments;
  std::string offsets;  // of inputs that share storage
};

std::string describe_input(const InputMetadata& input) {
  std::string text = fmt::format("input {} [{}] strides [{}]", c10::toString(input.dtype),
                                 fmt::join(input.sizes, ", "), fmt::join(input.strides, ", "));
  if (input.cpu) return "cpu " + text;
  text += fmt::format(" in {}storage {}", input.first_of_storage ? "new " : "", input.storage);
  switch (input.offset.kind) {
    case OffsetKind::kFirst:
      return text;
    case OffsetKind::kOther:
      return text + " elsewhere than the first";
    case OffsetKind::kRelative:
      return text + fmt::format(" {} bytes behind the first", input.offset.bytes);
    case OffsetKind::kAbsolute:
      break;
  }
  return text +
         fmt::format(" of {} bytes, offset {} bytes", input.storage_bytes, input.offset.bytes);
}

std::string describe_constant(const c10::IValue& constant) {
  if (constant.isTensor()) {  // a wrapped number
    const at::Tensor& number = constant.toTensor();
    if (number.scalar_type() == c10::ScalarType::Double)
      return fmt::format("{}", *number.const_data_ptr<double>());
    if (number.scalar_type() == c10::ScalarType::Long)
      return fmt::format("{}", *number.const_data_ptr<int64_t>());
    return fmt::format("a number of type {}", c10::toString(number.scalar_type()));
  }
  std::ostringstream text;
  text << constant;
  return text.str();
}

// `dynamic`: words of the operation where any number matches.
std::string describe(const Operand& operand, const std::vector<InputMetadata>& inputs,
                     const std::vector<uint32_t>& dynamic) {
  const auto describe_elements = [&] {
    std::vector<std::string> elements;
    for (const Operand& element : operand.elements)
      elements.push_back(describe(element, inputs, dynamic));
    return fmt::format("[{}]", fmt::join(elements, ", "));
  };
  switch (operand.kind) {
    case Operand::Kind::kConstant:
      if (!operand.elements.empty()) return describe_elements();
      if (std::count(dynamic.begin(), dynamic.end(), operand.number_word)) return "any number";
      return describe_constant(operand.constant);
    case Operand::Kind::kValue: {
      const auto input =
          std::find_if(inputs.begin(), inputs.end(),
                       [&](const InputMetadata& known) { return known.value == operand.value; });
      std::string text =
          input != inputs.end() ? describe_input(*input) : fmt::format("value {}", operand.value);
      if (operand.flags & kConj) text += " conjugated";
      if (operand.flags & kNeg) text += " negated";
      return text;
    }
    default:
      return describe_elements();
  }
}

DescribedOperation describe_operation(const Tape::Entry& entry, c10::ArrayRef<uint64_t> words,
                                      const std::vector<uint32_t>& dynamic) {
  DescribedOperation described{entry.op, entry.location, {}, {}};
  std::vector<InputMetadata> inputs;
  std::vector<StorageOffsets> offsets;
  for (const Operand& operand : decode_operands(words, &inputs, &offsets))
    described.arguments.push_back(describe(operand, inputs, dynamic));
  for (const StorageOffsets& known : offsets)
    described.offsets += fmt::format(" storage {} at {} [{}]", known.storage, known.first,
                                     fmt::join(known.others, ", "));
  return described;
}

std::string first_difference(const DescribedOperation& expected,
                             const DescribedOperation& recorded) {
  if (expected.op != recorded.op) return "the operator";
  const auto& schema = recorded.op->handle.schema().arguments();
  for (size_t i = 0; i < expected.arguments.size() && i < recorded.arguments.size(); ++i)
    if (expected.arguments[i] != recorded.arguments[i])
      return fmt::format("argument {} '{}': expected {}, recorded {}", i, schema.at(i).name(),
                         expected.arguments[i], recorded.arguments[i]);
  if (expected.offsets != recorded.offsets)
    return fmt::format("where inputs lie in what is written: expected{}, recorded{} (bytes)",
                       expected.offsets, recorded.offsets);
  return "numbers that had been equal to each other are not";
}

// Of several that are known the one that is most like the recorded operation.
Cursor::Next most_alike(const std::vector<Cursor::Next>& known, const Tape::Entry& recorded) {
  const auto same_operator =
      std::find_if(known.begin(), known.end(), [&](const Cursor::Next& next) {
        return next.trace->tape().entry(next.operation).op == recorded.op;
      });
  return same_operator != known.end() ? *same_operator : known.front();
}

}  // namespace

std::string describe_guard_failure(const Cursor& cursor, const Tape& tape) {
  const size_t index = tape.size() - 1;
  const Tape::Entry& entry = tape.entry(index);
  const std::string at = fmt::format("guard failed at operation {}: expected ", index);
  const std::string recorded =
      fmt::format(", recorded {} # {}", entry.op->name, to_string(entry.location));
  const std::vector<Cursor::Next> known = cursor.next();
  if (known.empty()) return at + "the end of the window" + recorded;
  const Cursor::Next next = most_alike(known, entry);
  const Tape& traced = next.trace->tape();
  const Tape::Entry& expected = traced.entry(next.operation);
  std::vector<uint32_t> dynamic;
  for (const DynamicScalar& number : next.trace->dynamic(next.operation))
    dynamic.push_back(uint32_t(number.word - traced.words_begin(next.operation)));
  const std::string others =
      known.size() > 1 ? fmt::format(" (or {} others)", known.size() - 1) : "";
  return at + fmt::format("{} # {}{}", expected.op->name, to_string(expected.location), others) +
         recorded + "; first difference: " +
         first_difference(describe_operation(expected, traced.words(next.operation), dynamic),
                          describe_operation(entry, tape.open_words(), dynamic));
}

}  // namespace torch_lazy
