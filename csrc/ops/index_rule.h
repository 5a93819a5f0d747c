// Which operators take indices, and within which dimension of their first argument these must lie.
#pragma once

#include <cstdint>
#include <string>

namespace torch_lazy {

enum class IndexRule : uint8_t {
  kNone,
  kRows,           // (weight, indices): the first dimension
  kDimension,      // (self, dim, index): dimension `dim`
  kEachDimension,  // (self, indices): each the dimension of its place; negative ones from the end
};

// By the name of an operator without its overload: "aten::gather".
IndexRule index_rule(const std::string& name);

}  // namespace torch_lazy
