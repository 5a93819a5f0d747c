// What an operation on a tape is, wherever it stands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tape/tape.h"

namespace torch_lazy {

// A hash of operator, source line, arguments and results but for slots, offsets and real numbers:
// equal for the same operation in two windows that differ in what is before it.
uint64_t signature(const Tape& tape, size_t operation);

}  // namespace torch_lazy
