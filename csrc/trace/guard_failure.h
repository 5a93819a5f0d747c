// Why a recording left the known traces, for people: what was recorded against what was expected.
#pragma once

#include <string>

#include "tape/tape.h"
#include "trace/known_traces.h"

namespace torch_lazy {

// "guard failed at operation 3: expected aten::mul.Tensor # a.py:4:8, recorded aten::add.Tensor
// # a.py:6:8; first difference: the operator". The cursor stands before the operation that is open
// on the tape.
std::string describe_guard_failure(const Cursor& cursor, const Tape& tape);

}  // namespace torch_lazy
