// What a printed kernel is called with: buffers, sizes and numbers by their names. Internal to the
// printer.
#pragma once

#include <string>

#include "codegen/print_context.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// On CUDA: of an instance, and of all of them where there are several.
void print_argument_structs(const Kernel& kernel, SourceWriter& out);

// `from`: what the arrays of pointers, sizes and numbers stand in: "arguments.".
void print_arguments(const PrintContext& context, const std::string& from, SourceWriter& out);

}  // namespace torch_lazy::codegen
