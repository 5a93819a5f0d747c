#include "ops/operator_info.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/fork.h"
#include "ops/dynamic_scalar_arguments.h"

namespace torch_lazy {
namespace {

// Copies cross devices, and indices may be anywhere, as on an accelerator.
bool name_takes_cpu_tensors(const std::string& name) {
  return name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::copy";
}

bool makes_uninitialized_memory(const std::string& name) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::empty.memory_format", "aten::empty_strided", "aten::empty_quantized"};
  return names->count(name) > 0;
}

// Outputs that a window can hand out without running: tensors, or one list of tensors.
bool returns_only_tensors(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  if (returns.size() == 1 && returns[0].type()->isSubtypeOf(*c10::ListType::ofTensors()))
    return true;
  for (const c10::Argument& value : returns)
    if (value.type()->kind() != c10::TypeKind::TensorType) return false;
  return true;
}

bool may_rebind_arguments(const c10::FunctionSchema& schema, const Effects& effects) {
  if (effects.inplace_view) return true;
  for (const c10::Argument& argument : schema.arguments())
    if (argument.is_out()) return true;
  return schema.name() == "aten::resize_" || schema.name() == "aten::resize_as_";
}

std::vector<int> returned_arguments(const c10::FunctionSchema& schema) {
  std::vector<int> returned;
  for (const c10::Argument& value : schema.returns()) {
    returned.push_back(-1);
    const c10::AliasInfo* alias = value.alias_info();
    if (!alias || !alias->isWrite()) continue;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::AliasInfo* argument = schema.arguments()[i].alias_info();
      if (argument && argument->beforeSets() == alias->beforeSets()) returned.back() = int(i);
    }
  }
  return returned;
}

bool fills_new_memory(const c10::FunctionSchema& schema) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::zeros",     "aten::ones",         "aten::full",      "aten::zeros_like",
      "aten::ones_like", "aten::full_like",    "aten::new_zeros", "aten::new_ones",
      "aten::new_full",  "aten::scalar_tensor"};
  return !schema.is_mutable() && names->count(schema.name()) > 0;
}

// What detach_ changes is autograd's alone.
bool counts_versions(const c10::OperatorHandle& handle, const Effects& effects) {
  return effects.writes_any() && handle.schema().name() != "aten::detach_" &&
         !handle.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView) &&
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

// A list of out= arguments that is not returned: the tape has no place for the metadata they get.
bool writes_what_it_does_not_return(const c10::FunctionSchema& schema, const Effects& effects) {
  const std::vector<int> returned = returned_arguments(schema);
  for (size_t i = 0; i < effects.arguments.size(); ++i)
    if (effects.arguments[i].writes &&
        std::find(returned.begin(), returned.end(), int(i)) == returned.end())
      return true;
  return false;
}

// Views of another dtype, copied or not, divide the offset by the sizes of elements and may refuse
// it; slice_inverse places a view of one argument where another lies.
bool looks_at_offsets(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  if (name == "aten::view" || name == "aten::view_copy")
    return schema.argumentIndexWithName("dtype").has_value();
  return schema.argumentIndexWithName("storage_offset").has_value() ||
         name == "aten::view_as_complex" || name == "aten::view_as_complex_copy" ||
         name == "aten::slice_inverse";
}

OffsetNeed offset_need(const c10::FunctionSchema& schema, const Effects& effects, bool rebinds) {
  if (looks_at_offsets(schema)) return OffsetNeed::kOfAll;
  if (rebinds) return OffsetNeed::kOfWritten;
  return effects.writes_any() ? OffsetNeed::kRelative : OffsetNeed::kNone;
}

bool picks_part(const c10::FunctionSchema& schema, const Effects& effects) {
  if (effects.returns.size() != 1 || effects.returns[0].kind != ReturnKind::AliasOf ||
      schema.returns()[0].type()->kind() != c10::TypeKind::TensorType)
    return false;
  for (const char* const begin : {"start", "index", "offset", "storage_offset"})
    if (schema.argumentIndexWithName(begin)) return true;
  return false;
}

OperatorInfo make_info(const c10::OperatorHandle& handle) {
  const c10::FunctionSchema& schema = handle.schema();
  std::string name = schema.name();
  if (!schema.overload_name().empty()) name += "." + schema.overload_name();
  const Effects& effects = effects_of(handle);
  const uint64_t id = XXH3_64bits(name.data(), name.size());
  const bool rebinds = may_rebind_arguments(schema, effects);
  const bool mask = effects.data_dependent_only_with_masks;
  const bool uninitialized = makes_uninitialized_memory(name);
  // One that returns nothing is recorded for what it writes (_foreach_add_).
  const bool recordable =
      returns_only_tensors(schema) && (!schema.returns().empty() || effects.writes_any());
  const bool deferrable = effects.known &&
                          !(rebinds && writes_what_it_does_not_return(schema, effects)) &&
                          recordable && !effects.random && (mask || !effects.data_dependent_output);
  return {id,
          &effects,
          deferrable,
          mask,
          uninitialized,
          effects.random,
          rebinds,
          fills_new_memory(schema),
          dynamic_scalar_arguments(schema),
          is_comparison(schema),
          name_takes_cpu_tensors(name),
          counts_versions(handle, effects),
          index_rule(schema.name()),
          effects.writes_any(),
          offset_need(schema, effects, rebinds),
          picks_part(schema, effects),
          returned_arguments(schema),
          handle,
          std::move(name)};
}

// Global: one entry per operator used, never removed, so references stay valid.
struct Table {
  ForkSafeMutex mutex{LockOrder::kOperators};  // guards `infos`
  std::unordered_map<const c10::FunctionSchema*, OperatorInfo> infos;
};

const OperatorInfo& look_up(const c10::OperatorHandle& handle) {
  static Table* const table = new Table;
  const c10::FunctionSchema* key = &handle.schema();
  const std::lock_guard<std::mutex> lock(table->mutex);
  const auto found = table->infos.find(key);
  if (found != table->infos.end()) return found->second;
  return table->infos.emplace(key, make_info(handle)).first->second;
}

}  // namespace

const OperatorInfo& operator_info(const c10::OperatorHandle& handle) {
  // A direct-mapped cache per thread keeps the lock off the recording path. The schema's address
  // names an operator for as long as it is registered.
  struct Cached {
    const c10::FunctionSchema* key = nullptr;
    const OperatorInfo* info = nullptr;
  };
  // On the heap: what an extension module may keep in static thread storage is scarce.
  static thread_local const auto cache_of_thread = std::make_unique<std::array<Cached, 1024>>();
  std::array<Cached, 1024>& cache = *cache_of_thread;
  const c10::FunctionSchema* key = &handle.schema();
  Cached& cached = cache[(reinterpret_cast<uintptr_t>(key) >> 5) % cache.size()];
  if (cached.key != key) cached = {key, &look_up(handle)};
  return *cached.info;
}

const OperatorInfo& operator_info(const char* name, const char* overload) {
  return operator_info(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

}  // namespace torch_lazy
