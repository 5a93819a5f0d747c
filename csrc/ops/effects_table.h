// What PyTorch's schemas and tags do not say about operators, each with the reason. Data only.
#pragma once

#include <string_view>

#include "ops/effects.h"

namespace torch_lazy::effects_table {

// Names are without "aten::" and overload. A `*` stands for any characters.
bool matches(std::string_view pattern, std::string_view name);

// Arguments written though the schema has no (a!) on them.
struct HiddenWrite {
  std::string_view name;
  std::string_view argument;
  std::string_view reason;
};

// Returns whose relation to an argument differs from the schema's.
struct HiddenAlias {
  std::string_view name;
  int result;
  ReturnKind kind;
  int argument;
  std::string_view reason;
};

struct Note {
  std::string_view name;
  std::string_view reason;
};

const HiddenWrite* hidden_write(std::string_view name, std::string_view argument);
const HiddenAlias* hidden_alias(std::string_view name, int result);

// These three take the name without the trailing underscore of in-place operators.
const Note* fails_on_data(std::string_view name);
const Note* data_dependent(std::string_view name);
const Note* random(std::string_view name);

// These take the name as it is.
const Note* overwrites_first_argument(std::string_view name);
const Note* inplace_view(std::string_view name);
// Whose out= argument is no destination only: it is read and written like that of an in-place
// operator, and no overload without it computes the same.
const Note* reads_out(std::string_view name);

}  // namespace torch_lazy::effects_table
