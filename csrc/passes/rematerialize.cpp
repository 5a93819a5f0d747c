#include "passes/rematerialize.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "ops/primitive.h"
#include "passes/fusable.h"

namespace torch_lazy {
namespace {

constexpr int kLineCost = 8;  // a cache line from or to memory
constexpr int kStoreCost = 2 * kLineCost;
constexpr size_t kMostNodesOfRecipe = 12;  // rematerialized for one value
// A value of so many times fewer elements (a row's mean) stays in the cache while it is read.
constexpr int64_t kSmall = 16;

// What a kernel has to do to make a value itself.
struct Recipe {
  std::vector<NodeId> nodes;
  std::set<ValueId> loads;   // what it does not read yet
  int64_t operators = 0;     // their cost, for a register of floats
  int64_t loaded_lines = 0;  // for a line of the value
};

struct ItemReader {
  size_t item;
  std::unordered_set<ValueId> reads;  // bases in memory
};

class Recomputation {
 public:
  Recomputation(const CoreGraph& graph, std::vector<FusedItem> items, int64_t least_bytes)
      : graph_(graph),
        items_(std::move(items)),
        least_bytes_(least_bytes),
        item_of_(graph.nodes.size(), kNoId) {
    for (const CoreNode& node : graph.nodes)
      if (node.kind == CoreKind::kMutation) written_.insert(graph.base_of(node.inputs[0]));
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto* const group = std::get_if<FusionGroup>(&items_[i]);
      if (!group) continue;
      for (const NodeId id : group->nodes) item_of_[size_t(id)] = int32_t(i);
      stored_.insert(group->stored.begin(), group->stored.end());
    }
  }

  std::vector<FusedItem> run() {
    for (FusedItem& item : items_) {
      auto* const group = std::get_if<FusionGroup>(&item);
      if (!group) continue;
      // In the graph's order: what is made of a value may then be made of its recipe.
      for (const ValueId id : std::vector<ValueId>(group->stored))
        if (auto recipes = worth_making_again(id)) make_again(*group, id, *recipes);
    }
    std::erase_if(items_, [&](const FusedItem& item) {
      const auto* const group = std::get_if<FusionGroup>(&item);
      return group && group->stored.empty() && !can_fail(graph_, *group);
    });
    return std::move(items_);
  }

 private:
  using Recipes = std::vector<std::pair<ItemReader, Recipe>>;

  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  static bool contains(const std::vector<NodeId>& nodes, NodeId id) {
    return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
  }

  const FusionGroup& group_of(const ItemReader& reader) const {
    return std::get<FusionGroup>(items_[reader.item]);
  }

  // By reader; nothing where it is cheaper read.
  std::optional<Recipes> worth_making_again(ValueId id) const {
    const CoreValue& made = value(id);
    const int64_t element = int64_t(c10::elementSize(made.dtype));
    if (made.numel() == 0 || made.numel() * element < least_bytes_ ||
        !is_elementwise(made.producer))
      return std::nullopt;
    std::set<int32_t> readers;
    for (const NodeId user : made.users) {
      if (user == kNoId || node(user).kind == CoreKind::kGather) return std::nullopt;
      const int32_t item = item_of_[size_t(user)];
      if (item == kNoId) return std::nullopt;  // a library call, a view, or made at some index
      if (item != item_of_[size_t(made.producer)]) readers.insert(item);
    }
    const int64_t registers_of_line = element < 4 ? 4 / element : 1;
    Recipes recipes;
    int64_t saved = kStoreCost;
    for (const int32_t item : readers) {
      ItemReader reader = reader_of(size_t(item));
      Recipe recipe;
      if (!add_recipe(reader, made, id, recipe) || !has_room_for(reader, recipe))
        return std::nullopt;
      const int64_t times = evaluations(group_of(reader), made.numel());
      saved += kLineCost - times * registers_of_line * recipe.operators -
               kLineCost * recipe.loaded_lines;
      recipes.emplace_back(std::move(reader), std::move(recipe));
    }
    if (saved <= 0) return std::nullopt;
    return recipes;
  }

  // How often a kernel evaluates an element of a value of that size: where it reads it broadcast,
  // and where it reduces, perhaps both before and after.
  static int64_t evaluations(const FusionGroup& group, int64_t numel) {
    const bool reduces =
        std::find(group.reduced.begin(), group.reduced.end(), true) != group.reduced.end();
    return std::max<int64_t>(1, c10::multiply_integers(group.domain) / numel) * (reduces ? 2 : 1);
  }

  bool is_elementwise(NodeId id) const {
    const CoreKind kind = node(id).kind;
    return kind == CoreKind::kPointwise || kind == CoreKind::kCopy;
  }

  ItemReader reader_of(size_t item) const {
    ItemReader reader{item, {}};
    const FusionGroup& group = group_of(reader);
    for (const auto* const nodes : {&group.nodes, &group.inlined})
      for (const NodeId id : *nodes)
        for (const ValueId input : node(id).inputs)
          if (const ValueId base = graph_.base_of(input); is_in_memory(base))
            reader.reads.insert(base);
    return reader;
  }

  bool has_room_for(const ItemReader& reader, const Recipe& recipe) const {
    const FusionGroup& group = group_of(reader);
    return group.nodes.size() + group.inlined.size() + recipe.nodes.size() <= kMostGroupNodes &&
           reader.reads.size() + recipe.loads.size() <= kMostGroupInputs;
  }

  // False where the reader cannot make it of what is in memory when it runs.
  bool add_recipe(const ItemReader& reader, const CoreValue& made, ValueId id,
                  Recipe& recipe) const {
    const NodeId producer = value(id).producer;
    if (contains(recipe.nodes, producer) || contains(group_of(reader).inlined, producer))
      return true;
    const CoreKind kind = node(producer).kind;
    const bool of_index_alone = kind == CoreKind::kFill || kind == CoreKind::kArange;
    if (recipe.nodes.size() == kMostNodesOfRecipe || !(of_index_alone || is_elementwise(producer)))
      return false;
    recipe.nodes.push_back(producer);
    recipe.operators += kind == CoreKind::kPointwise ? primitive::cost_of(node(producer).op) : 1;
    return std::all_of(node(producer).inputs.begin(), node(producer).inputs.end(),
                       [&](ValueId input) { return add_input(reader, made, input, recipe); });
  }

  bool add_input(const ItemReader& reader, const CoreValue& made, ValueId input,
                 Recipe& recipe) const {
    const ValueId base = graph_.base_of(input);
    const NodeId producer = value(base).producer;
    if (producer != kNoId && node(producer).kind == CoreKind::kNumber) return true;
    if (!is_in_memory(base)) return base == input && add_recipe(reader, made, input, recipe);
    const bool small = value(input).numel() * kSmall <= made.numel();
    if (!small && !is_read_along(value(input))) return false;
    if (reader.reads.count(base) || recipe.loads.count(base)) return true;
    // Read later than before, it could no longer be written in place.
    if (written_.count(base)) return false;
    recipe.loads.insert(base);
    if (!small) recipe.loaded_lines += lines_for(value(base).dtype, made.dtype);
    return true;
  }

  // Lines of one dtype with as many elements as a line of another.
  static int64_t lines_for(c10::ScalarType loaded, c10::ScalarType made) {
    const int64_t bytes = int64_t(c10::elementSize(loaded)), of = int64_t(c10::elementSize(made));
    return (bytes + of - 1) / of;
  }

  // Neighbours along the last dimension are neighbours in memory. Others may be what the stored
  // value was made for.
  static bool is_read_along(const CoreValue& read) {
    for (size_t d = read.sizes.size(); d-- > 0;)
      if (read.sizes[d] != 1) return read.strides[d] <= 1;
    return true;
  }

  // An input, the result of a library call, what a kernel stores.
  bool is_in_memory(ValueId base) const {
    const NodeId producer = value(base).producer;
    if (producer == kNoId) return true;
    if (node(producer).kind == CoreKind::kNumber) return false;
    return !is_fusable(node(producer).kind) || stored_.count(base) != 0;
  }

  void make_again(FusionGroup& group, ValueId id, const Recipes& recipes) {
    for (const auto& [reader, recipe] : recipes) {
      std::vector<NodeId>& inlined = std::get<FusionGroup>(items_[reader.item]).inlined;
      inlined.insert(inlined.end(), recipe.nodes.begin(), recipe.nodes.end());
      std::sort(inlined.begin(), inlined.end());
    }
    std::erase(group.stored, id);
    stored_.erase(id);
  }

  const CoreGraph& graph_;
  std::vector<FusedItem> items_;
  const int64_t least_bytes_;
  std::vector<int32_t> item_of_;         // by node: the group that it is a member of
  std::unordered_set<ValueId> stored_;   // by all groups
  std::unordered_set<ValueId> written_;  // inputs
};

}  // namespace

std::vector<FusedItem> rematerialize(const CoreGraph& graph, std::vector<FusedItem> items,
                                     int64_t least_bytes) {
  return Recomputation(graph, std::move(items), least_bytes).run();
}

}  // namespace torch_lazy
