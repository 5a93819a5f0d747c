// Compares storages before and after an operator with its declared effects.

#include "ops/effects_check.h"

#include <ATen/ops/empty.h>
#include <c10/util/StringUtil.h>

#include <cstring>
#include <functional>
#include <unordered_set>

namespace torch_lazy {
namespace {

bool inspectable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && !tensor.is_meta() &&
         (tensor.storage().nbytes() == 0 || tensor.storage().data() != nullptr);
}

// The same bytes where the host can read them.
c10::Storage on_host(const c10::Storage& storage) {
  if (storage.device().is_cpu()) return storage;
  at::Tensor bytes = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(storage.device()));
  bytes.set_(storage, 0, {int64_t(storage.nbytes())});
  return bytes.cpu().storage();
}

uint64_t hash_bytes(const c10::Storage& anywhere) {
  const c10::Storage storage = on_host(anywhere);
  const auto* data = static_cast<const unsigned char*>(storage.data());
  const size_t bytes = storage.nbytes();
  uint64_t hash = bytes;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
    uint64_t chunk;
    std::memcpy(&chunk, data + i, sizeof(chunk));
    hash = (hash ^ chunk) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 31;
  }
  for (; i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001B3ull;
  return hash;
}

void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& use) {
  if (value.isTensor()) {
    use(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, use);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) for_each_tensor(element, use);
  }
}

}  // namespace

EffectsCheck::EffectsCheck(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments)
    : op_(op) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!inspectable(tensor)) return;
      seen_.push_back({i, tensor, tensor.storage(), hash_bytes(tensor.storage()),
                       tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset()});
    });
  }
}

template <typename... Parts>
void EffectsCheck::complain(std::string& out, const Parts&... parts) const {
  out += c10::str(op_.operator_name(), ": ", parts..., '\n');
}

const std::string& EffectsCheck::name(size_t argument) const {
  return op_.schema().arguments()[argument].name();
}

void EffectsCheck::check_arguments(const Effects& effects, std::string& out) const {
  // Writing one of two arguments over the same storage changes the other rightly.
  std::unordered_set<const c10::StorageImpl*> written;
  for (const Seen& seen : seen_)
    if (effects.arguments[seen.argument].writes)
      written.insert(seen.storage.unsafeGetStorageImpl());

  for (const Seen& seen : seen_) {
    const ArgumentEffect& effect = effects.arguments[seen.argument];
    if (written.count(seen.storage.unsafeGetStorageImpl()) == 0 &&
        hash_bytes(seen.storage) != seen.bytes)
      complain(out, "argument '", name(seen.argument), "' changed, but is not declared as written");
    const bool moved = !seen.tensor.sizes().equals(seen.sizes) ||
                       !seen.tensor.strides().equals(seen.strides) ||
                       seen.tensor.storage_offset() != seen.offset;
    if (moved && !effect.out && !(effect.writes && effects.inplace_view))
      complain(out, "argument '", name(seen.argument),
               "' has other sizes, strides or offset, but the operator is not declared to change "
               "them");
  }
}

bool EffectsCheck::check_source(size_t index, const ReturnEffect& effect, const at::Tensor& tensor,
                                std::string& out) const {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  bool declared = false;
  const Seen* source = nullptr;
  for (const Seen& seen : seen_) {
    // An in-place operator may have given its argument a new storage.
    if (storage != seen.storage.unsafeGetStorageImpl() &&
        storage != seen.tensor.storage().unsafeGetStorageImpl())
      continue;
    source = &seen;
    declared |= static_cast<int>(seen.argument) == effect.argument;
  }
  if (source != nullptr && !declared)
    complain(out, "output ", index, " aliases argument '", name(source->argument),
             "', which is not declared");
  const bool must_alias = effect.kind == ReturnKind::AliasOf || effect.kind == ReturnKind::SameAs;
  if (must_alias && source == nullptr)
    complain(out, "output ", index, " is declared to alias argument '",
             name(static_cast<size_t>(effect.argument)), "', but does not");
  return source != nullptr;
}

std::string EffectsCheck::finish(c10::ArrayRef<c10::IValue> returns) const {
  const Effects& effects = effects_of(op_);
  if (!effects.known) return "";
  std::string out;
  check_arguments(effects, out);
  std::unordered_set<const c10::StorageImpl*> fresh;
  for (size_t i = 0; i < returns.size() && i < effects.returns.size(); ++i) {
    std::unordered_set<const c10::StorageImpl*> own;  // elements of one list may share storage
    for_each_tensor(returns[i], [&](const at::Tensor& tensor) {
      // Without bytes there is nothing to alias, and sharing the storage has no effect.
      if (!inspectable(tensor) || tensor.storage().nbytes() == 0) return;
      if (check_source(i, effects.returns[i], tensor, out)) return;
      const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
      own.insert(storage);
      if (fresh.count(storage) != 0)
        complain(out, "output ", i, " shares memory with another output, which is not declared");
    });
    fresh.insert(own.begin(), own.end());
  }
  return out;
}

}  // namespace torch_lazy
