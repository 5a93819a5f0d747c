// In which sweep over the reduction dimensions everything is evaluated, and what is spilled to
// scratch for a later sweep. The same for every target.
//
//   row values of level 0
//   sweep 0: expressions along the reduction dimensions that need no reduction; reductions of these
//   row values of level 1: results of these reductions and what follows from them
//   sweep 1: expressions that need them; ...
//   ...
//   row stores
//
// "Row": what does not vary along the reduction dimensions. A kernel without reduction dimensions
// has no sweeps: all is row values of level 0 and row stores.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/loop_analysis.h"
#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

struct Sweep {
  std::vector<ExprId> reloaded;    // from scratch, where an earlier sweep spilled them
  std::vector<ExprId> exprs;       // evaluated, operands first
  std::vector<ExprId> spilled;     // of `exprs`: into scratch
  std::vector<ExprId> reductions;  // whose argument is at hand
  std::vector<uint32_t> stores;
};

struct Schedule {
  std::vector<Dimensions> varying;  // of each expression
  std::vector<int> levels;          // of each expression
  std::vector<std::vector<ExprId>>
      rows;  // by level, operands first; one more than there are sweeps
  std::vector<Sweep> sweeps;
  std::vector<uint32_t> row_stores;
  // Where in an element's scratch a spilled expression lies, in 4-byte values; -1: not spilled.
  std::vector<int32_t> scratch_places;
  uint32_t scratch_values = 0;  // per element of the reduction dimensions
};

enum class Spilling : uint8_t {
  kNone,
  kScratch,    // what is dear to evaluate again, into memory
  kRegisters,  // whatever a later sweep would have to load or evaluate again
  kPackets,    // packets (thread_loop.h) that a later sweep would have to load again
};

Schedule make_schedule(const Kernel& kernel, Spilling spilling);

}  // namespace torch_lazy::codegen
