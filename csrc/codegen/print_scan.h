// Scans as source. Internal to the printer.
//
// A scan has an accumulator in each sweep that evaluates it. Along the lanes (Axis::kReduction) all
// its lanes are what the vectors before come to, and a vector's own lanes are scanned in registers;
// else each lane has its own.
#pragma once

#include "codegen/print_context.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// Before the loop of a sweep that has `copies` of its body.
void declare_scans(const PrintContext& context, size_t sweep, int copies, SourceWriter& out);

// In the loop: the scan's value at this step, of all copies.
void print_scan(const PrintContext& context, size_t sweep, ExprId id, const Body& body,
                SourceWriter& out);

}  // namespace torch_lazy::codegen
