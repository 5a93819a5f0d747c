#include "tape/dynamic_scalars.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "ops/operator_info.h"

namespace torch_lazy {

bool may_have_dynamic_scalars(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Float || dtype == c10::ScalarType::Double;
}

namespace {

// Walks the words of an operation's arguments without decoding them: this happens once for every
// window that is learnt, so it must cost next to nothing beside running the operations.
class Walker {
 public:
  // Tensors of the operation in the order that OutputMetadata::source counts.
  using Tensors = c10::SmallVector<c10::ScalarType, 16>;

  // `dtypes` by value slot: read, and extended by the inputs that the words describe. Without it
  // dtypes are not looked at.
  Walker(c10::ArrayRef<uint64_t> words, std::vector<c10::ScalarType>* dtypes)
      : words_(words), dtypes_(dtypes) {}

  // Where the dynamic numbers of arguments in `mask` stand is appended to `numbers`, as an index
  // into all words, of which this operation's start at `base`.
  void walk(uint32_t mask, size_t base, std::vector<uint32_t>& numbers) {
    for (uint32_t argument = 0; at_ < words_.size(); ++argument) {
      numbers_ = argument < 32 && (mask >> argument & 1) ? &numbers : nullptr;
      base_ = base;
      step();
    }
  }
  const Tensors& tensors() const { return tensors_; }

 private:
  void number(size_t word) {
    if (numbers_ && may_be_dynamic(words_[word])) numbers_->push_back(uint32_t(base_ + word));
  }

  void input(uint64_t header) {
    if (!dtypes_) return;
    const auto dtype = c10::ScalarType(words_[at_ + 3] & 0xff);
    const uint32_t value = word_payload(header);
    if (value >= dtypes_->size()) dtypes_->resize(value + 1);
    (*dtypes_)[value] = dtype;
    tensors_.push_back(dtype);
  }

  void step() {
    const uint64_t header = words_[at_];
    const uint32_t payload = word_payload(header);
    const Tag tag = word_tag(header);
    if (tag == Tag::kValue && dtypes_) tensors_.push_back((*dtypes_)[payload]);
    if (tag == Tag::kInput || tag == Tag::kCpuTensor) input(header);
    if (is_real_number(header)) number(at_ + 1);
    at_ += argument_size(words_, at_);
    if (tag == Tag::kList || tag == Tag::kTensorList || tag == Tag::kOptionalTensorList)
      for (uint32_t i = 0; i < payload; ++i) step();
  }

  c10::ArrayRef<uint64_t> words_;
  std::vector<c10::ScalarType>* dtypes_;
  std::vector<uint32_t>* numbers_ = nullptr;
  size_t base_ = 0;
  size_t at_ = 1;  // past the operator
  Tensors tensors_;
};

// Enters the dtypes of what the operation made, and says whether all it returned, or all it was
// given where it returns nothing or compares, has a dtype that numbers may be dynamic for.
bool take_outputs(const OperatorInfo& op, c10::ArrayRef<OutputSummary> outputs,
                  const Walker::Tensors& tensors, std::vector<c10::ScalarType>& dtypes) {
  using Kind = OutputMetadata::Kind;
  bool dynamic = true;
  for (const OutputSummary& output : outputs) {
    if (output.kind == Kind::kUndefined) continue;
    if (output.kind == Kind::kArgument) {
      dynamic &= may_have_dynamic_scalars(tensors[output.source]);
      continue;
    }
    if (output.value >= dtypes.size()) dtypes.resize(output.value + 1);
    dtypes[output.value] = output.dtype;
    dynamic &= may_have_dynamic_scalars(output.dtype);
  }
  if (outputs.empty() || op.compares)
    dynamic = std::all_of(tensors.begin(), tensors.end(), may_have_dynamic_scalars);
  return dynamic;
}

// Whether an operation has numbers that may be dynamic, whatever its dtypes.
bool has_numbers(const OperatorInfo& op, c10::ArrayRef<uint64_t> words) {
  if (op.dynamic_scalar_arguments == 0) return false;
  std::vector<uint32_t> numbers;
  Walker(words, nullptr).walk(op.dynamic_scalar_arguments, 0, numbers);
  return !numbers.empty();
}

bool equal(const uint64_t* a, const uint64_t* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(uint64_t)) == 0;
}

}  // namespace

bool may_be_dynamic(uint64_t bits) {
  constexpr auto kInfinity = std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
  constexpr auto kMostFloat = std::bit_cast<uint64_t>(double{std::numeric_limits<float>::max()});
  constexpr uint64_t kSign = uint64_t(1) << 63;
  const uint64_t magnitude = bits & ~kSign;
  return magnitude <= kMostFloat || magnitude == kInfinity;
}

std::vector<uint32_t> dynamic_scalar_words(const Tape& tape) {
  std::vector<uint32_t> numbers;
  // Most windows have few or none: what comes after the last one is not looked at for dtypes.
  size_t last = tape.size();
  while (last > 0 && !has_numbers(*tape.entry(last - 1).op, tape.words(last - 1))) --last;
  if (last == 0) return numbers;
  std::vector<c10::ScalarType> dtypes(tape.values);
  c10::SmallVector<OutputSummary, 8> outputs;
  for (size_t i = 0; i < last; ++i) {
    const size_t before = numbers.size();
    const OperatorInfo& op = *tape.entry(i).op;
    Walker walker(tape.words(i), &dtypes);
    walker.walk(op.dynamic_scalar_arguments, tape.words_begin(i), numbers);
    outputs.clear();
    summarize_outputs(tape.outputs(i), outputs);
    if (!take_outputs(op, outputs, walker.tensors(), dtypes)) numbers.resize(before);
  }
  return numbers;
}

bool matches(c10::ArrayRef<uint64_t> all_words, size_t begin, size_t end,
             c10::ArrayRef<uint64_t> known, c10::ArrayRef<DynamicScalar> dynamic) {
  if (known.size() != end - begin) return false;
  const uint64_t* const recorded = all_words.data() + begin;
  size_t from = 0;
  for (const DynamicScalar& number : dynamic) {
    const size_t at = number.word - begin;
    const uint64_t bits = recorded[at];
    if (!equal(known.data() + from, recorded + from, at - from) || !may_be_dynamic(bits) ||
        bits != all_words[number.first])
      return false;
    from = at + 1;
  }
  return equal(known.data() + from, recorded + from, known.size() - from);
}

std::optional<ScalarHistory> ScalarHistory::remembered(c10::ArrayRef<uint64_t> bits,
                                                       c10::ArrayRef<uint32_t> words,
                                                       const DynamicScalars& dynamic) {
  ScalarHistory history;
  history.add(bits);
  if (dynamic.empty()) return history;
  std::vector<Number>& numbers = history.numbers_;
  // What is not dynamic has been equal to all that is equal to it now, as far as anybody knows.
  numbers.assign(words.size(), Number{.same = UINT32_MAX});
  const auto index_of = [&](uint32_t word) {
    return uint32_t(std::lower_bound(words.begin(), words.end(), word) - words.begin());
  };
  for (const auto& [word, first] : dynamic) {
    const uint32_t at = index_of(word), same = index_of(first);
    if (at >= words.size() || words[at] != word || same > at || words[same] != first)
      return std::nullopt;
    numbers[at] = {same, true};
  }
  history.tell_apart(bits);
  return history;
}

bool ScalarHistory::add(c10::ArrayRef<uint64_t> bits) {
  if (recordings_++ == 0) {
    first_ = bits.vec();
    return false;
  }
  if (numbers_.empty()) {
    // What was always equal needs no more than its first bits.
    if (bits.equals(first_)) return false;
    numbers_.resize(first_.size());
    tell_apart(first_);
  }
  TORCH_INTERNAL_ASSERT(bits.size() == first_.size(), "tapes of one structure differ in numbers");
  bool more = false;
  for (size_t i = 0; i < bits.size(); ++i) {
    more |= bits[i] != bits[numbers_[i].same];
    if (numbers_[i].changed || bits[i] == first_[i]) continue;
    numbers_[i].changed = more = true;
  }
  if (more) tell_apart(bits);
  return more;
}

void ScalarHistory::tell_apart(c10::ArrayRef<uint64_t> bits) {
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> firsts;
  for (uint32_t i = 0; i < bits.size(); ++i)
    numbers_[i].same = firsts.emplace(std::pair(numbers_[i].same, bits[i]), i).first->second;
}

size_t ScalarHistory::dynamic() const {
  size_t count = 0;
  for (uint32_t i = 0; i < numbers_.size(); ++i)
    count += numbers_[i].changed && numbers_[i].same == i;
  return count;
}

DynamicScalars ScalarHistory::dynamic_scalars(c10::ArrayRef<uint32_t> words) const {
  DynamicScalars dynamic_scalars;
  for (uint32_t i = 0; i < numbers_.size(); ++i)
    if (numbers_[i].changed) dynamic_scalars.push_back({words[i], words[numbers_[i].same]});
  return dynamic_scalars;
}

}  // namespace torch_lazy
