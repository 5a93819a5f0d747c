// Reductions as source: accumulators, and what becomes of them. Internal to the printer.
//
// Along the lanes (Axis::kReduction) an accumulator is a vector whose lanes are combined at the
// end; else each lane has its own result. A long floating sum is kept in two stages, `c` for what
// whole blocks of the loop have added up to and `a` for the block at hand, so that its rounding
// error stays near that of a pairwise sum.
#pragma once

#include <string>
#include <vector>

#include "codegen/print_context.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// What the threads that share a reduction have each, and how it is combined.
struct Fold {
  std::string name;    // of the result in every thread
  std::string shared;  // of memory for the values of several threads
  Type type = Type::kFloat;
  std::string value;     // the thread's own
  std::string identity;  // what changes no result
  std::string of_warp;   // the function over the threads of a warp
  std::string of_two;
};

class ReductionPrinter {
 public:
  // `copies` of the accumulators; `staged`: in two stages, where it is a floating sum.
  ReductionPrinter(const PrintContext& context, ExprId reduction, int copies, bool staged);

  // Before the loops over the reduction dimensions. `first_index`: the flattened reduction index of
  // the first element.
  void declare(const std::string& first_index, SourceWriter& out) const;
  // At both ends of a block of the innermost loop.
  void begin_block(SourceWriter& out) const;
  void end_block(SourceWriter& out) const;
  // In the innermost loop; `flat_index` is the flattened reduction index of the first lane.
  void accumulate(const Body& body, const std::string& flat_index, SourceWriter& out) const;
  // After the loops, of jammed steps: the result of each to memory, for finish() to read there.
  void set_aside(SourceWriter& out) const;
  // After the loops: defines the result. For Axis::kReduction the copies are combined.
  void finish(SourceWriter& out) const;

  // In place of finish(), where threads share the reduction: its fold; for an arg reduction that of
  // the indices where `best` is, which comes after; the result, once it is combined.
  Fold fold() const;
  Fold fold_of_indices() const;
  void define(SourceWriter& out) const;
  bool is_arg() const;

 private:
  bool along_lanes() const { return context_.kernel.axis == Axis::kReduction; }
  std::string accumulator(int copy) const;
  std::string numbered(const char* family, int copy) const;
  // What is kept from one step of the loops to the next, for each of the jammed steps.
  std::string kept(const char* family, int copy) const;
  void declare_kept(Type type, const char* family, int copy, const std::string& value,
                    SourceWriter& out) const;
  std::string result_of_loop(int copy) const;
  // The same, or where it has been set aside.
  std::string result_of_step(int copy) const;
  std::string over_copies() const;
  void add_block(const std::string& block, int copy, SourceWriter& out) const;
  std::string staged_result(int copy) const;
  std::string index(int copy) const;
  std::string identity() const;
  std::string combine(const std::string& a, const std::string& b) const;
  std::string declared_type(Type type) const;
  std::string call(const std::string& function, Type type,
                   const std::vector<std::string>& arguments) const;
  // Of the elements in the accumulator's lanes, the first of which has the index `first`.
  std::string indices(const std::string& first) const;
  void accumulate_product(const Body& body, SourceWriter& out) const;
  void accumulate_arg(const Body& body, const std::string& value, const std::string& at,
                      SourceWriter& out) const;
  void finish_arg(SourceWriter& out) const;
  // The lanes' indices where they hold `best`, else what is greater than any.
  std::string candidates(const std::string& best) const;

  const PrintContext& context_;
  ExprId id_;
  const Expr& expr_;
  Type argument_type_;
  bool vector_;  // the accumulators are vectors
  int copies_;
  bool staged_;
};

}  // namespace torch_lazy::codegen
