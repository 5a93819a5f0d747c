// What an operation on a tape is, whatever stands before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// A hash of operator, source line, arguments and results but for slots, offsets, and numbers that
// may be dynamic: equal for the same operation in two windows that differ in what is before it. One
// that reads an input of the window is another than one that reads what the window has named.
uint64_t signature(const Tape& tape, size_t operation);

// Of each operation of the tape the same, wherever the tensors come from that it reads: what they
// look like counts, and not whether they are inputs of the window or named before.
std::vector<uint64_t> signatures_of_calls(const Tape& tape);

// Of its operator and line alone.
uint64_t line_signature(const Tape& tape, size_t operation);
// Of the operators and lines of the last `operations` of the first `end`, and how many they are.
uint64_t lines_signature(const Tape& tape, size_t end, size_t operations);

}  // namespace torch_lazy
