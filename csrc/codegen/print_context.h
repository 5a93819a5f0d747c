// What all parts of the printer know about the kernel at hand: where values live and what they are
// called. Internal to the printer.
//
// Names in the printed source, of which no two families can meet:
//   p_<buffer>        a buffer's pointer       q<n>_<buffer>   a pointer at this work item's
//   elements s<n>, d<n>        size and number slots    p<n>, r<n>, i   loop indices; i runs along
//   the lanes t<id>_<what>      an expression's value    v<id>_<what>    a scalar's value in all
//   lanes a<id>, x<id>      accumulators and, for arg reductions, their indices; also b, c, e, n, z
//   f<id>, h<id>, g<id>   of an accumulator what all threads have, its index, and shared memory
//   m<id>             scratch ("memory") of a spilled expression
//   k<id>, y<id>      its packets in shared memory, and the one at hand
//   x<id>_<buffer>    a square in shared memory that is loaded along one side and read along
//   another u<id>_<buffer>, w<n>_<buffer>   tiles or packets that are loaded or will be stored
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "codegen/loop_ir.h"
#include "codegen/printer.h"
#include "codegen/sweeps.h"

namespace torch_lazy::codegen {

// The copy of an unrolled lanes' loop's body that a statement belongs to, and whether only the
// first `n` lanes of the last copy are inside of the loop's range.
struct Body {
  int copy = 0;
  int copies = 1;
  bool last_masked = false;

  bool is_masked() const { return last_masked && copy + 1 == copies; }
};

struct PrintContext {
  const Kernel& kernel;
  const Target& target;
  const Schedule& schedule;
  size_t lane_dimension;         // kNoDimension: the kernel has none, all its values are scalars
  std::vector<bool> as_scalars;  // scalar expressions that something reads as a scalar
  std::vector<bool> as_vectors;  // scalar expressions that something reads in all lanes
  std::vector<bool> by_steps;    // scalars of each of the jammed steps that a sweep reads
  std::set<std::string>& functions;  // of the prelude that have been called
  int scratch_lanes = 1;             // values that an element of scratch holds for each expression

  // Unrolled steps spill to variables, which become registers.
  bool uses_scratch() const {
    return schedule.scratch_values > 0 && !is_unrolled(kernel) && !is_cuda();
  }

  // A call of a function of the prelude.
  std::string call(const std::string& function, const std::vector<std::string>& arguments) const;
  // Of an overloaded one, whose first value has the type `overload` (see prelude_for).
  std::string call(const std::string& function, const std::string& overload,
                   const std::vector<std::string>& arguments) const;
  bool is_cuda() const { return target.kind == Target::Kind::kCuda; }
  // Of sizes and of what is counted with them.
  std::string index_type() const {
    return is_cuda() && kernel.thread_loop.narrow ? "int32" : "int64";
  }
  // Whether the threads of a GPU have several elements each in a step of the lanes' loop.
  bool has_packets() const { return is_cuda() && kernel.thread_loop.packet > 1; }
  // Whether one loop of a GPU goes through all reduction dimensions.
  bool is_flat() const { return is_cuda() && kernel.thread_loop.flat; }
  // Whether a GPU's work item is a row that has a part of a warp, with a thread for each step.
  bool is_short_row() const {
    return is_cuda() && kernel.axis == Axis::kReduction && kernel.thread_loop.threads % 32 != 0;
  }
  // Whether the threads of a block share the steps of a work item.
  bool shares_steps() const { return is_cuda() && kernel.thread_loop.rows > 1; }
  // Whether a work item of a GPU is a square of which loads go through shared memory.
  bool transposes() const { return is_cuda() && kernel.thread_loop.transposed >= 0; }
  // Whether a work item is several steps of a parallel dimension (Kernel::jam).
  bool is_jammed() const { return !is_cuda() && kernel.jam.steps > 1; }
  bool varies_by_step(ExprId id) const;
  bool varies_by_step(const Access& access) const;
  // A load of jammed steps, as many as there are lanes, which lie one after the other in memory.
  bool is_square(ExprId load) const;
  // A product that jammed sums alone read: each adds it as it multiplies, as libraries' products of
  // matrices do, so that it has no value of its own.
  bool is_added_product(ExprId id) const;
  bool is_transposed(ExprId load) const;
  bool is_packet(ExprId load) const;
  bool is_packet(const Store& store) const;
  // A cast to what is half as wide, of which only packets are made: their stores round, two
  // elements by one instruction.
  bool is_rounded_by_stores(ExprId cast) const;
  bool is_vector(ExprId id) const;
  // The value of a scalar expression is known when a work item begins.
  bool is_work_item_scalar(ExprId id) const;
};

// The elements that lie between two expressions in scratch, where a work item has `elements`: a
// multiple of 64, and more by at least the lanes of the last vector that are outside.
constexpr int64_t scratch_run(int64_t elements) {
  return (elements + 127) / 64 * 64;
}

PrintContext make_context(const Kernel& kernel, const Target& target, const Schedule& schedule,
                          std::set<std::string>& functions);

// The type of an expression's value, as a vector or as a scalar.
std::string value_type(Type type, bool vector);

// Whether it compares the lanes' own index with a number, for which no lane needs its index.
bool compares_lane_index(const PrintContext& context, ExprId id);
// Whether a store's address, value or predicate differs from lane to lane.
bool is_vector_store(const PrintContext& context, const Store& store);

// Types as the prelude names them.
const char* scalar_type(Type type);   // of values: "float" for kBFloat16
const char* vector_type(Type type);   // of values: "v_float" for kBFloat16
const char* storage_type(Type type);  // of buffers: "unsigned short" for kBFloat16

std::string name_of_size(Size size);
std::string name_of_index(const PrintContext& context, size_t dimension);
std::string name_of_scalar(const PrintContext& context, ExprId id);
std::string name_of_splat(const PrintContext& context, ExprId id);
std::string name_of_square(const PrintContext& context, ExprId load);
// Of the packets that a thread has loaded, or will store; of the vectors of a CPU's square, by
// steps.
std::string name_of_loaded_packet(const PrintContext& context, ExprId load);
std::string name_of_stored_packet(const PrintContext& context, const Store& store);
// How a statement in `body` reads an expression, as a vector or as a scalar.
std::string read_vector(const PrintContext& context, ExprId id, const Body& body);
std::string read(const PrintContext& context, ExprId id, const Body& body, bool as_vector);

// The index of the first lane along the lanes' dimension: "i", "i + 16".
std::string lane_index(const PrintContext& context, const Body& body);

// `index * stride`, shorter where it can be; empty for a stride of 0.
std::string product(const std::string& index, Size stride);

}  // namespace torch_lazy::codegen
