#include "device/stand_in.h"

#include <mutex>
#include <utility>

#include "base/fork.h"

namespace torch_lazy {
namespace {

// What copies of metadata between tensors copy along: each copy makes a stand-in of its own.
class StandIn final : public c10::BackendMeta {
 public:
  explicit StandIn(c10::intrusive_ptr<LazyTensorImpl> made)
      : made_(std::move(made)), source_(made_.get()) {}
  // Of the lazy tensor that owns this object.
  explicit StandIn(LazyTensorImpl& owner) : source_(&owner) {}

  c10::intrusive_ptr<c10::BackendMeta> clone(
      const c10::intrusive_ptr<c10::BackendMeta>&) const override {
    return c10::make_intrusive<StandIn>(LazyTensorImpl::make_stand_in(*source_));
  }

  LazyTensorImpl* get() const { return made_.get(); }

 private:
  c10::intrusive_ptr<LazyTensorImpl> made_;  // null in a lazy tensor, which needs none itself
  LazyTensorImpl* source_;
};

LazyTensorImpl* kept_by(c10::TensorImpl& holder) {
  c10::BackendMeta* const meta = holder.get_backend_meta();
  return meta && typeid(*meta) == typeid(StandIn) ? static_cast<StandIn*>(meta)->get() : nullptr;
}

// PyTorch made the holder in a way that copied no meta, and any thread may be the first to see it.
LazyTensorImpl& give_stand_in(c10::TensorImpl& holder) {
  static ForkSafeMutex& mutex = *new ForkSafeMutex(LockOrder::kLeaf);
  const std::lock_guard<std::mutex> lock(mutex);
  if (LazyTensorImpl* const kept = kept_by(holder)) return *kept;
  auto made = LazyTensorImpl::make_stand_in(holder);
  LazyTensorImpl& impl = *made;
  holder.set_backend_meta(c10::make_intrusive<StandIn>(std::move(made)));
  return impl;
}

}  // namespace

LazyTensorImpl* stand_in_of(c10::TensorImpl& holder) {
  LazyTensorImpl* const kept = kept_by(holder);
  if (kept && kept->follows(holder)) [[likely]]
    return kept;
  if (typeid(holder) != typeid(c10::TensorImpl) || !holder.has_storage()) return nullptr;
  c10::StorageImpl* const storage = holder.unsafe_storage().unsafeGetStorageImpl();
  if (!storage || typeid(*storage) != typeid(LazyStorage)) return nullptr;
  LazyTensorImpl& stand_in = kept ? *kept : give_stand_in(holder);
  stand_in.follow(holder);
  return &stand_in;
}

void prepare_stand_in(const at::Tensor& source) {
  if (LazyTensorImpl* const impl = lazy_impl(source); impl && !impl->is_stand_in())
    impl->set_backend_meta(c10::make_intrusive<StandIn>(*impl));
}

}  // namespace torch_lazy
