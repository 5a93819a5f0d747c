// Schema and tags first, then the hand-written table; the result is kept for each operator.

#include "ops/effects.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/fork.h"
#include "ops/effects_table.h"

namespace torch_lazy {
namespace {

bool holds_tensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  for (const c10::TypePtr& inner : type.containedTypes()) {
    if (holds_tensors(*inner)) return true;
  }
  return false;
}

// Alias sets of a list may stand on the list or on its elements; here both are the argument's.
void collect(const c10::AliasInfo& info, std::unordered_set<c10::Symbol>& sets, bool& writes) {
  sets.insert(info.beforeSets().begin(), info.beforeSets().end());
  writes |= info.isWrite();
  for (const c10::AliasInfo& inner : info.containedTypes()) collect(inner, sets, writes);
}

struct Alias {
  std::unordered_set<c10::Symbol> sets;
  bool writes = false;

  explicit Alias(const c10::Argument& argument) {
    if (const c10::AliasInfo* info = argument.alias_info()) collect(*info, sets, writes);
    sets.erase(c10::AliasInfo::wildcardSet());
  }
  bool meets(const Alias& other) const {
    return std::any_of(sets.begin(), sets.end(),
                       [&](c10::Symbol set) { return other.sets.count(set) != 0; });
  }
};

// The parts of an operator's qualified name that the table speaks of.
struct Name {
  explicit Name(const c10::FunctionSchema& schema) {
    const std::string_view qualified = schema.name();
    const size_t colons = qualified.find("::");
    space = qualified.substr(0, colons);
    name = colons == std::string_view::npos ? qualified : qualified.substr(colons + 2);
    base = name.ends_with('_') && !name.ends_with("__") ? name.substr(0, name.size() - 1) : name;
  }
  std::string_view space, name;
  std::string_view base;  // without the underscore of the in-place form
};

void judge_arguments(const c10::FunctionSchema& schema, const Name& name,
                     const std::vector<Alias>& aliases, Effects& effects) {
  for (size_t i = 0; i < aliases.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    ArgumentEffect effect;
    effect.tensor = holds_tensors(*argument.type());
    if (effect.tensor) {
      effect.out = argument.is_out() && effects_table::reads_out(name.name) == nullptr;
      effect.writes =
          aliases[i].writes || effects_table::hidden_write(name.name, argument.name()) != nullptr;
      effect.reads = !effect.out && !(i == 0 && effects.overwrites_first_argument);
    }
    effects.arguments.push_back(effect);
  }
}

ReturnEffect annotated_return(const Alias& alias, const std::vector<Alias>& aliases) {
  ReturnEffect effect;
  size_t sources = 0;
  for (size_t j = 0; j < aliases.size(); ++j) {
    if (!alias.meets(aliases[j])) continue;
    if (sources++ == 0)
      effect = {aliases[j].writes ? ReturnKind::SameAs : ReturnKind::AliasOf, static_cast<int>(j)};
  }
  if (sources > 1) effect.kind = ReturnKind::MayAlias;
  return effect;
}

void judge_returns(const c10::FunctionSchema& schema, const Name& name,
                   const std::vector<Alias>& aliases, Effects& effects) {
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const c10::Argument& result = schema.returns()[i];
    const Alias alias(result);
    ReturnEffect effect;
    if (!holds_tensors(*result.type())) {
      effect.kind = ReturnKind::NotTensor;
    } else if (const auto* entry = effects_table::hidden_alias(name.name, static_cast<int>(i));
               entry != nullptr && effects.known) {
      effect = {entry->kind, entry->argument};
    } else {
      effect = annotated_return(alias, aliases);
    }
    // out= overloads of operators in the alias table return their out argument as annotated.
    for (size_t j = 0; j < aliases.size(); ++j)
      if (effects.arguments[j].out && alias.meets(aliases[j]))
        effect = {ReturnKind::SameAs, static_cast<int>(j)};
    effects.returns.push_back(effect);
  }
}

void judge_data_dependence(const c10::OperatorHandle& op, const Name& name, Effects& effects) {
  // The CPU's flash attention has the tag for its dropout, which it refuses to do; gradients of
  // attention have it for the dropout whose random state they are given.
  const bool draws = name.base != "_scaled_dot_product_flash_attention_for_cpu" &&
                     !name.base.ends_with("_backward");
  effects.random = (op.hasTag(at::Tag::nondeterministic_seeded) && draws) ||
                   effects_table::random(name.base) != nullptr;
  // Integer division fails only with a rounding mode; plain division is too common to be called
  // fallible.
  const bool plain_division = (name.base == "div" || name.base == "divide") &&
                              !op.schema().argumentIndexWithName("rounding_mode").has_value();
  // A number is converted before anything is recorded.
  const std::optional<int> value = op.schema().argumentIndexWithName("value");
  const bool fills_with_number = name.base == "masked_fill" && value &&
                                 !holds_tensors(*op.schema().arguments()[size_t(*value)].type());
  // A random operator given its parameters as numbers has checked them before anything is recorded.
  const bool reads_any = std::any_of(effects.arguments.begin(), effects.arguments.end(),
                                     [](const ArgumentEffect& argument) { return argument.reads; });
  effects.fails_on_data = (reads_any || !effects.random) && !plain_division && !fills_with_number &&
                          effects_table::fails_on_data(name.base) != nullptr;
  effects.data_dependent_output = op.hasTag(at::Tag::data_dependent_output) ||
                                  op.hasTag(at::Tag::dynamic_output_shape) ||
                                  effects_table::data_dependent(name.base) != nullptr;
  effects.data_dependent_only_with_masks = effects.data_dependent_output && name.base == "index";
}

Effects judge(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const Name name(schema);
  Effects effects;
  effects.known = (name.space == "aten" || name.space == "prims" || name.space == "torch_lazy") &&
                  !schema.is_vararg() && !schema.is_varret();
  effects.overwrites_first_argument =
      effects.known && effects_table::overwrites_first_argument(name.name) != nullptr;
  const std::vector<Alias> aliases(schema.arguments().begin(), schema.arguments().end());
  judge_arguments(schema, name, aliases, effects);
  judge_returns(schema, name, aliases, effects);
  judge_data_dependence(op, name, effects);
  effects.inplace_view =
      op.hasTag(at::Tag::inplace_view) || effects_table::inplace_view(name.name) != nullptr;
  return effects;
}

struct Entry {
  std::string name;  // with overload: tells a custom operator from one freed at the same address
  Effects effects;
};

struct Slot {
  std::atomic<const c10::FunctionSchema*> schema{nullptr};
  std::atomic<const Entry*> entry{nullptr};
};

constexpr size_t kSlots = size_t{1} << 14;  // four times the operators of aten
std::array<Slot, kSlots> slots;

// Writers only: readers see a slot's schema after its entry.
ForkSafeMutex entries_mutex(LockOrder::kLeaf);

// Entries are never freed: operators are few, and readers hold references without a lock.
std::deque<Entry>& entries() {
  static auto* all = new std::deque<Entry>;
  return *all;
}

size_t home_of(const c10::FunctionSchema* schema) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(schema) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(bits >> 50);
}
static_assert(kSlots == size_t{1} << (64 - 50));

std::string name_of(const c10::OperatorHandle& op) {
  return op.operator_name().name + '.' + op.operator_name().overload_name;
}

// aten's operators live as long as the process. Others may be freed and another be registered at
// the same address, so they are told apart by name.
bool still_valid(const Entry& entry, const c10::OperatorHandle& op) {
  return entry.effects.known || entry.name == name_of(op);
}

[[gnu::noinline]] const Effects& add_entry(const c10::OperatorHandle& op) {
  Entry made{name_of(op), judge(op)};
  const c10::FunctionSchema* schema = &op.schema();
  std::lock_guard<std::mutex> lock(entries_mutex);
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots[(home_of(schema) + i) % kSlots];
    const c10::FunctionSchema* present = slot.schema.load(std::memory_order_relaxed);
    if (present != nullptr && present != schema) continue;
    if (present == schema) {
      const Entry* known = slot.entry.load(std::memory_order_relaxed);
      if (still_valid(*known, op)) return known->effects;  // another thread was quicker
    }
    const Entry& entry = entries().emplace_back(std::move(made));
    slot.entry.store(&entry, std::memory_order_release);
    slot.schema.store(schema, std::memory_order_release);
    return entry.effects;
  }
  TORCH_CHECK(false, "torch_lazy: more than ", kSlots, " operators in use");
}

}  // namespace

const Effects& effects_of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema* schema = &op.schema();
  const size_t home = home_of(schema);
  for (size_t i = 0; i < kSlots; ++i) {
    const Slot& slot = slots[(home + i) % kSlots];
    const c10::FunctionSchema* present = slot.schema.load(std::memory_order_acquire);
    if (present == schema) [[likely]] {
      const Entry& entry = *slot.entry.load(std::memory_order_acquire);
      if (still_valid(entry, op)) [[likely]]
        return entry.effects;
      return add_entry(op);
    }
    if (present == nullptr) break;
  }
  return add_entry(op);
}

}  // namespace torch_lazy
