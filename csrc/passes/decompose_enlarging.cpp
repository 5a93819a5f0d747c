// Enlarging by whole factors: each element becomes a window of equal ones.

#include <algorithm>
#include <cmath>
#include <string>

#include "passes/pooling_windows.h"

namespace torch_lazy {
namespace {

using namespace pooling;

// Whether ATen finds the nearest by the factors: it multiplies by a float, which may round to
// another element. It is asked at both ends of what each element becomes. `exact`: it looks from
// the middle of an element.
bool enlarges(const Decomposition& d, const AllWindows& windows, size_t first_scale, bool exact) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const Windows& along = windows[i];
    const double given = d.given(first_scale + i) ? d.real(first_scale + i) : 0;
    const float scale = given > 0 ? static_cast<float>(1.0 / given)
                                  : static_cast<float>(along.count) / float(along.input);
    for (int64_t of = 0; of < along.count; ++of)
      for (const int64_t to : {of * along.kernel, (of + 1) * along.kernel - 1}) {
        const float from = exact ? (float(to) + 0.5F) * scale : float(to) * scale;
        if (std::min(int64_t(std::floor(from)), along.count - 1) != of) return false;
      }
  }
  return true;
}

Rule enlarge(size_t dims, bool exact) {
  return [=](Decomposition& d) {
    const auto windows = whole_factors(d.tensor(0).info(), d.output(), dims);
    if (!windows || !enlarges(d, *windows, 2, exact)) return false;
    return finish_apart(d, unsqueeze(d.tensor(0), inner_dims(*windows)), *windows);
  };
}

Rule enlarge_backward(size_t dims, bool exact) {
  return [=](Decomposition& d) {
    const Term grad = d.operand(0, d.compute());
    const auto windows = whole_factors(d.output(), grad.info(), dims);
    if (!windows || !c10::isFloatingType(grad.dtype()) || !enlarges(d, *windows, 3, exact))
      return false;
    return d.finish(sum_of_apart(grad, *windows));
  };
}

}  // namespace

void add_enlarging_rules(RuleTable& table) {
  for (const size_t dims : {1, 2, 3})
    for (const bool exact : {false, true}) {
      const std::string name =
          (exact ? "_upsample_nearest_exact" : "upsample_nearest") + std::to_string(dims) + "d";
      table[name] = enlarge(dims, exact);
      table[name + "_backward"] = enlarge_backward(dims, exact);
    }
}

}  // namespace torch_lazy
