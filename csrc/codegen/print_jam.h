// Jammed steps as source (Kernel::jam). Internal to the printer.
//
// What differs between the steps of a work item are arrays with an element for each, and loops over
// the steps are written out: all of it becomes registers. But for what is dear and done once with
// each step's sums, which would be most of the code: it goes step by step, through memory.
#pragma once

#include "codegen/print_context.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// A loop over the steps, and the same in which the jammed dimension's index has its name. Steps
// behind the end of the dimension are its last one.
void open_steps(const PrintContext& context, SourceWriter& out);
void open_jammed_steps(const PrintContext& context, SourceWriter& out);

// Whether what is done with each step's sums goes step by step.
bool goes_step_by_step(const PrintContext& context);

// A loop over the steps that there are: for what is stored.
void open_present_steps(const PrintContext& context, SourceWriter& out);
void close_present_steps(const PrintContext& context, SourceWriter& out);

}  // namespace torch_lazy::codegen
