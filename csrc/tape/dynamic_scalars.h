// Dynamic scalars: a number that differs between two recordings alike in all else becomes an
// argument.
//
// Recordings are alike in *structure* when their tapes differ at most in dynamic numbers. The
// numbers of a structure are remembered; those that changed become dynamic: the trace matches any
// number there, and its graph takes the number as an input. What never changed stays a constant.
//
// Only numbers that operators compute with in float32 or float64 are dynamic
// (ops/dynamic_scalar_arguments). No NaN is: kernels may branch on it. Nor is a finite number that
// no float32 holds: eager refuses it at the call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// A place on a tape where any number matches.
struct DynamicScalar {
  uint32_t word;   // the bits, as an index into Tape::all_words()
  uint32_t first;  // the first place that holds the same number; both must match with equal bits
  bool operator==(const DynamicScalar&) const = default;
};
// In order of `word`.
using DynamicScalars = std::vector<DynamicScalar>;

// Of what an operation returns.
bool may_have_dynamic_scalars(c10::ScalarType dtype);

// Where numbers stand that may be dynamic: indices into all_words(), ascending.
std::vector<uint32_t> dynamic_scalar_words(const Tape& tape);

// Whether a dynamic scalar may have this value.
bool may_be_dynamic(uint64_t bits);

// Whether a recorded operation is the known one: equal words but for the dynamic scalars, of which
// those that are the same number carry equal bits. The recording's operation begins at `begin` of
// `all_words` and ends with them; so does the known one of the tape that `dynamic` speaks of.
bool matches(c10::ArrayRef<uint64_t> all_words, size_t begin, size_t end,
             c10::ArrayRef<uint64_t> known, c10::ArrayRef<DynamicScalar> dynamic);

// The numbers that recordings of one structure had.
class ScalarHistory {
 public:
  // After one recording with these bits, and others before it which have shown what is dynamic of
  // the numbers that stand at `words`. None where `dynamic` is of other words.
  static std::optional<ScalarHistory> remembered(c10::ArrayRef<uint64_t> bits,
                                                 c10::ArrayRef<uint32_t> words,
                                                 const DynamicScalars& dynamic);

  // Another recording's, in order. Returns whether more must be dynamic, or told apart, than
  // before.
  bool add(c10::ArrayRef<uint64_t> bits);
  // How many numbers are dynamic; equal ones count once.
  size_t dynamic() const;
  // `words`: where the numbers stand. Numbers that have always been equal share one.
  DynamicScalars dynamic_scalars(c10::ArrayRef<uint32_t> words) const;

 private:
  struct Number {
    uint32_t same = 0;     // the first number that has always had the same bits
    bool changed = false;  // at least once
  };
  // Numbers with different bits are not the same.
  void tell_apart(c10::ArrayRef<uint64_t> bits);

  std::vector<uint64_t> first_;  // of the first recording
  std::vector<Number> numbers_;  // empty until one has changed
  uint32_t recordings_ = 0;
};

}  // namespace torch_lazy
