// Expressions as source. Internal to the printer.
#pragma once

#include <string>

#include "codegen/print_access.h"
#include "codegen/print_context.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// `value` as a literal of `type`.
std::string integer_literal(int64_t value, Type type);

// The indices of all lanes, where the first lane's is `first`.
std::string lane_indices(const PrintContext& context, const std::string& first);

// Defines a value that varies along the lanes, in one copy of the body.
void print_vector_expr(const PrintContext& context, const AccessPrinter& accesses, ExprId id,
                       const Body& body, SourceWriter& out);

// Defines a scalar expression other than a reduction, and its splat, as far as they are read.
void print_scalar_expr(const PrintContext& context, const AccessPrinter& accesses, ExprId id,
                       SourceWriter& out);

// Defines a scalar, and its splat, as far as they are read, by `text`.
void print_scalar(const PrintContext& context, ExprId id, const std::string& text,
                  SourceWriter& out);

}  // namespace torch_lazy::codegen
