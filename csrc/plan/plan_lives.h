// When the slots of a plan are no longer needed, and when it first writes what it was given.
#pragma once

#include <cstddef>

#include "plan/plan.h"

namespace torch_lazy {

// Fills `released` of every step; inputs and outputs live to the end.
void release_slots(Plan& plan);

// The first step that writes memory of an input; the number of steps where there is none.
size_t first_write(const Plan& plan);

}  // namespace torch_lazy
