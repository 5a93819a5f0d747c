// What TORCH_LAZY_DEBUG shows of windows (1) and operations (5).
#pragma once

#include <string_view>

#include "tape/tape.h"

namespace torch_lazy {

void debug_window(std::string_view cause, const char* state, const Tape& tape);
void debug_operation(const OperatorInfo& op, LocationId location, bool deferred);

}  // namespace torch_lazy
