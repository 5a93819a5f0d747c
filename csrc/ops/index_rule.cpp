#include "ops/index_rule.h"

#include <unordered_map>

namespace torch_lazy {

IndexRule index_rule(const std::string& name) {
  static const auto* const rules = new std::unordered_map<std::string, IndexRule>{
      {"aten::embedding", IndexRule::kRows},
      {"aten::_embedding_bag", IndexRule::kRows},
      {"aten::_embedding_bag_forward_only", IndexRule::kRows},
      {"aten::gather", IndexRule::kDimension},
      {"aten::index_add", IndexRule::kDimension},
      {"aten::index_add_", IndexRule::kDimension},
      {"aten::index_copy", IndexRule::kDimension},
      {"aten::index_copy_", IndexRule::kDimension},
      {"aten::index_reduce", IndexRule::kDimension},
      {"aten::index_reduce_", IndexRule::kDimension},
      {"aten::index_select", IndexRule::kDimension},
      {"aten::scatter", IndexRule::kDimension},
      {"aten::scatter_", IndexRule::kDimension},
      {"aten::scatter_add", IndexRule::kDimension},
      {"aten::scatter_add_", IndexRule::kDimension},
      {"aten::scatter_reduce", IndexRule::kDimension},
      {"aten::scatter_reduce_", IndexRule::kDimension},
      {"aten::index_fill", IndexRule::kDimensionOrFromEnd},
      {"aten::index_fill_", IndexRule::kDimensionOrFromEnd},
      {"aten::index", IndexRule::kEachDimension},
      {"aten::index_put", IndexRule::kEachDimension},
      {"aten::index_put_", IndexRule::kEachDimension},
      {"aten::put", IndexRule::kElements},
      {"aten::put_", IndexRule::kElements},
      {"aten::take", IndexRule::kElements},
      {"aten::nll_loss_forward", IndexRule::kClasses},
      {"aten::nll_loss2d_forward", IndexRule::kClasses},
      {"torch_lazy::one_hot_of_classes", IndexRule::kOwnElements},
  };
  const auto found = rules->find(name);
  return found == rules->end() ? IndexRule::kNone : found->second;
}

}  // namespace torch_lazy
