#include "ops/index_rule.h"

#include <unordered_map>

namespace torch_lazy {

IndexRule index_rule(const std::string& name) {
  static const auto* const rules = new std::unordered_map<std::string, IndexRule>{
      {"aten::embedding", IndexRule::kRows},
      {"aten::gather", IndexRule::kDimension},
      {"aten::index_add", IndexRule::kDimension},
      {"aten::index_add_", IndexRule::kDimension},
      {"aten::index_copy", IndexRule::kDimension},
      {"aten::index_copy_", IndexRule::kDimension},
      {"aten::index_select", IndexRule::kDimension},
      {"aten::scatter", IndexRule::kDimension},
      {"aten::scatter_", IndexRule::kDimension},
      {"aten::scatter_add", IndexRule::kDimension},
      {"aten::scatter_add_", IndexRule::kDimension},
      {"aten::scatter_reduce", IndexRule::kDimension},
      {"aten::scatter_reduce_", IndexRule::kDimension},
      {"aten::index", IndexRule::kEachDimension},
      {"aten::index_put", IndexRule::kEachDimension},
      {"aten::index_put_", IndexRule::kEachDimension},
  };
  const auto found = rules->find(name);
  return found == rules->end() ? IndexRule::kNone : found->second;
}

}  // namespace torch_lazy
