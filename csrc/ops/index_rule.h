// Which operators take indices, and where these must lie, mostly in the first argument.
#pragma once

#include <cstdint>
#include <string>

namespace torch_lazy {

enum class IndexRule : uint8_t {
  kNone,
  kRows,                // (weight, indices): the first dimension
  kDimension,           // (self, dim, index): dimension `dim`
  kDimensionOrFromEnd,  // the same; negative ones count from the end
  kEachDimension,  // (self, indices): each the dimension of its place; negative ones from the end
  kElements,       // (self, index): the elements in order; negative ones from the end
  kOwnElements,    // (self, limit): those of self, below the limit
  kClasses,        // (self, target, ..., ignored): the dimension of classes, or the last integer
};

// By the name of an operator without its overload: "aten::gather".
IndexRule index_rule(const std::string& name);

}  // namespace torch_lazy
