// Which kernels write what a partial write takes right where it goes.
#pragma once

#include <vector>

#include "plan/buffer_assignment.h"

namespace torch_lazy {

// Of partial writes that happen in place (BufferAssignment::roots) and take a kernel's result: it
// is written early, by the kernel, where between the two
//  - nothing reads or writes what is there, in the kernel itself but the element that is written
//    (which undo_conflicts sees to),
//  - nothing can fail on data if it is an input,
// and where the result is read, by whoever else, before anything is written on top of it, and in
// rows as in memory of its own.
void assign_direct_writes(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                          const std::vector<FusedItem>& items, BufferAssignment& assignment);

}  // namespace torch_lazy
