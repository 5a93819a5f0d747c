// Choices between values, by conditions, masks and bounds.

#include <string>
#include <vector>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;

// Whether every number of one dtype lies within the range of the other.
bool holds_all_of(ScalarType dtype, ScalarType of) {
  if (c10::promoteTypes(of, dtype) != dtype) return false;
  return dtype != c10::kHalf || !c10::isIntegralType(of, /*includeBool=*/false) ||
         c10::elementSize(of) == 1;
}

// x[..., mask] = value, where the value is the same for all that the mask selects, however many
// that are: of a choice between both.
bool put_by_mask(Decomposition& d) {
  const Term x = d.tensor(0);
  const size_t rank = x.info().dims();
  std::vector<torch::jit::Value*> indices = d.list(1);
  while (!indices.empty() && !has_complete_type(indices.back())) indices.pop_back();
  if (indices.empty() || !has_complete_type(indices.back()) ||
      !has_complete_type(d.tensor(2).value))
    return false;
  const size_t first = indices.size() - 1;  // dimension of x that the mask is for
  for (size_t i = 0; i < first; ++i)
    if (has_complete_type(indices[i])) return false;
  const Term mask{&d.builder(), indices.back()};
  const size_t masked = mask.info().dims();
  Term value = d.tensor(2);
  if (mask.dtype() != c10::kBool || masked == 0 || value.dtype() != x.dtype()) return false;
  // The value is aligned with what is selected: the masked dimensions are one there.
  const size_t behind = rank - first - masked;
  if (const size_t own = value.info().dims(); own > behind) {
    const size_t at = own - 1 - behind;
    if (value.info().sizes[at] != 1) return false;
    std::vector<int64_t> further;
    for (size_t i = 1; i < masked; ++i) further.push_back(int64_t(at + i));
    value = unsqueeze(value, further);
  }
  std::vector<int64_t> others;
  for (size_t i = 0; i < rank; ++i)
    if (i < first || i >= first + masked) others.push_back(int64_t(i));
  return d.finish(where(unsqueeze(mask, others), d.boolean(3) ? x + value : value, x));
}

}  // namespace

void add_selection_rules(RuleTable& table) {
  table["index_put"] = put_by_mask;
  table["where.self"] = [](Decomposition& d) {
    const Term condition = d.operand(0, c10::kBool);
    const ScalarType dtype = d.output().dtype;
    return d.finish(where(condition, d.operand(1, dtype), d.operand(2, dtype)));
  };
  table["masked_fill.Scalar"] = [](Decomposition& d) {
    const ScalarType dtype = d.output().dtype;
    return d.finish(where(d.operand(1, c10::kBool), d.operand(2, dtype), d.operand(0, dtype)));
  };
  // ATen refuses a value that overflows.
  table["masked_fill.Tensor"] = [](Decomposition& d) {
    const ScalarType dtype = d.output().dtype;
    if (!d.is_number(2) && !holds_all_of(dtype, d.tensor(2).dtype())) return false;
    return d.finish(where(d.operand(1, c10::kBool), d.operand(2, dtype), d.operand(0, dtype)));
  };
  const auto bound = [&](const std::string& name, const std::vector<const char*>& overloads,
                         int lower, int upper) {
    for (const char* overload : overloads)
      table[with_overload(name, overload)] = [=](Decomposition& d) {
        if (d.compute() == c10::kBool) return false;
        Term x = d.common_operand(0);
        // Of two zeros the second is taken. ATen's vectors take x where bounds are numbers.
        const bool by_tensor = *overload != '\0';
        if (lower > 0 && d.given(size_t(lower))) {
          const Term bound = d.common_operand(size_t(lower));
          x = by_tensor ? maximum(x, bound) : maximum(bound, x);
        }
        if (upper > 0 && d.given(size_t(upper))) {
          const Term bound = d.common_operand(size_t(upper));
          x = by_tensor ? minimum(x, bound) : minimum(bound, x);
        }
        return d.finish(x);
      };
  };
  bound("clamp", {"", "Tensor"}, 1, 2);
  bound("clamp_min", {"", "Tensor"}, 1, 0);
  bound("clamp_max", {"", "Tensor"}, 0, 1);
}

}  // namespace torch_lazy
