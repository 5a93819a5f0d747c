// Scans as source. Internal to the printer.
//
// A scan has an accumulator, which every sweep that evaluates it begins anew. Along the lanes
// (Axis::kReduction) all lanes of it are what the vectors before add up to, and a vector's own
// lanes are scanned in registers; else each lane has its own.
#pragma once

#include "codegen/print_context.h"
#include "codegen/source_writer.h"
#include "codegen/sweeps.h"

namespace torch_lazy::codegen {

// Before the loop of a sweep that has `copies` of its body.
void declare_scans(const PrintContext& context, const Sweep& sweep, int copies, SourceWriter& out);

// In the loop: the scan's value at this step, of all copies.
void print_scan(const PrintContext& context, ExprId id, const Body& body, SourceWriter& out);

}  // namespace torch_lazy::codegen
