// Collectives of torch.distributed on lazy tensors: the process group's backend for the CPU works
// on the memory of the lazy tensors itself.
//
// A collective is a sync point of the window that knows one of its tensors. Its work may go on
// after the call, on threads of the backend. That is safe without more: a storage's buffer keeps
// its identity, the tensors given to the backend keep the buffer alive, no window that is open
// knows the tensors, and a program may not touch them before it has waited, on any device. A device
// without kernels (offload/) has one more rule, since its storages are valid as a whole: of a
// tensor that is part of one, a copy is exchanged.
#include "device/collectives.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <mutex>
#include <utility>

#include "base/immortal_library.h"
#include "device/call.h"
#include "device/register.h"
#include "offload/host_call.h"
#include "offload/runtime_device.h"
#include "ops/replace_tensors.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// Where it runs: on the host for a device whose operators do.
c10::DispatchKeySet collective_keys() {
  return is_offloaded() ? c10::DispatchKeySet(c10::DispatchKey::CPU) : inner_keys();
}

// The lazy tensors of one call, and the CPU tensors on their memory that the backend is given.
class Exchanged {
 public:
  explicit Exchanged(const OperatorInfo& op) : op_(op) {}

  // A value with CPU tensors in the place of lazy ones, at any depth of lists.
  c10::IValue to_inner(const c10::IValue& value) {
    return replace_tensors(value, [this](const at::Tensor& lazy) { return inner(lazy); });
  }
  // The reverse: those tensors that stand for lazy ones become them again.
  c10::IValue to_lazy(const c10::IValue& value) const {
    return replace_tensors(value, [this](const at::Tensor& inner) { return lazy(inner); });
  }
  // The collective has ended: copies go back to where they are of, once.
  void write_back() const {
    const std::lock_guard lock(writing_back_);
    const StepThreadState state;
    for (Copy& copy : std::exchange(copies_, {})) copy.inner.copy_(copy.host);
  }
  at::Tensor lazy(const at::Tensor& inner) const {
    for (const Pair& pair : pairs_)
      if (pair.inner.is_same(inner)) return pair.lazy;
    return inner;
  }

 private:
  struct Pair {
    at::Tensor inner, lazy;
  };

  // An alias: the inner tensor itself changes its metadata with the lazy one, while the backend's
  // threads read theirs.
  at::Tensor inner(const at::Tensor& lazy) {
    if (!lazy.defined()) return lazy;
    LazyTensorImpl* const impl = lazy_impl(lazy);
    TORCH_CHECK_VALUE(impl, op_.name, " was given tensors on devices ",
                      lazy_device(execution_device().current()), " and ", lazy.device(),
                      ": move all tensors of a collective to one device");
    Recorder& recorder = Recorder::current();
    recorder.resolve(impl->binding, impl->state());
    if (recorder.binds(impl->state())) recorder.sync(Flush::by(op_));
    const StepThreadState state;
    const at::Tensor inner = at::alias(impl->inner());
    pairs_.push_back({mirrored(inner.storage()) ? on_host(inner) : inner, lazy});
    return pairs_.back().inner;
  }

  // The host's bytes, or where the program may use the rest of the storage meanwhile a copy.
  at::Tensor on_host(const at::Tensor& inner) {
    if (covers_its_storage(inner)) return lent_on_host(inner, Access::kWrite, op_.name);
    copies_.push_back({inner, inner.cpu()});
    return copies_.back().host;
  }

  struct Copy {
    at::Tensor inner, host;
  };

  const OperatorInfo& op_;
  std::vector<Pair> pairs_;
  // Of the program's and the process group's threads, of which each may learn first that it ended.
  mutable std::mutex writing_back_;
  mutable std::vector<Copy> copies_;
};

// The backend's work, which shows lazy tensors as results.
class LazyWork final : public c10d::Work {
 public:
  LazyWork(c10::intrusive_ptr<c10d::Work> work, std::shared_ptr<const Exchanged> tensors)
      : Work(-1, work->retrieveOpType()), work_(std::move(work)), tensors_(std::move(tensors)) {}

  bool isCompleted() override {
    const bool completed = work_->isCompleted();
    if (completed) tensors_->write_back();
    return completed;
  }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  int sourceRank() const override { return work_->sourceRank(); }
  void synchronize() override {
    work_->synchronize();
    tensors_->write_back();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    const bool done = work_->wait(timeout);
    if (done) tensors_->write_back();
    return done;
  }
  void blockCurrentStream() override { work_->blockCurrentStream(); }
  void abort() override { work_->abort(); }
  float getDuration() const override { return work_->getDuration(); }
  uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }

  std::vector<at::Tensor> result() override {
    std::vector<at::Tensor> results = work_->result();
    for (at::Tensor& tensor : results) tensor = tensors_->lazy(tensor);
    return results;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const c10::intrusive_ptr<c10::ivalue::Future> future = work_->getFuture();
    // A future of a device's work knows the storages that it is about, and refuses tensors of
    // another device: they are the same as before.
    using Shown = std::tuple<c10::IValue, std::vector<c10::ivalue::Future::WeakStorage>>;
    const auto show = [tensors = tensors_](c10::ivalue::Future& done) -> Shown {
      tensors->write_back();
      return {tensors->to_lazy(done.value()), done.storages()};  // raises what the work raised
    };
    return future->then(show, future->elementType());
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    return work_->getFutureResult();
  }

 private:
  const c10::intrusive_ptr<c10d::Work> work_;
  const std::shared_ptr<const Exchanged> tensors_;
};

bool is_work(const c10::IValue& value) {
  return value.isCustomClass() &&
         value.type()->isSubtypeOf(*c10::getCustomClassType<c10::intrusive_ptr<c10d::Work>>());
}

void collective_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet,
                       torch::jit::Stack* stack) {
  const size_t base = stack->size() - op.schema().arguments().size();
  const auto tensors = std::make_shared<Exchanged>(operator_info(op));
  for (size_t i = base; i < stack->size(); ++i) (*stack)[i] = tensors->to_inner((*stack)[i]);
  op.redispatchBoxed(collective_keys(), stack);
  bool goes_on = false;
  for (size_t i = base; i < stack->size(); ++i) goes_on |= is_work((*stack)[i]);
  if (!goes_on) tensors->write_back();
  for (size_t i = base; i < stack->size(); ++i) {
    c10::IValue& returned = (*stack)[i];
    if (is_work(returned))
      returned = c10::IValue(c10::intrusive_ptr<c10d::Work>(
          c10::make_intrusive<LazyWork>(returned.toCustomClass<c10d::Work>(), tensors)));
    else
      returned = tensors->to_lazy(returned);
  }
}

}  // namespace

void wait_if_work(const c10::IValue& value) {
  if (is_work(value)) value.toCustomClass<c10d::Work>()->wait();
}

void register_collectives() {
  torch::Library& c10d = immortal_library(torch::Library::IMPL, "c10d", c10::DispatchKey::Lazy);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("c10d::", 0) != 0) continue;
    const auto op = dispatcher.findSchema(name);
    // What has no kernel for the CPU has none for any device.
    if (op && op->hasKernelForDispatchKey(c10::DispatchKey::CPU))
      c10d.impl(name.name.substr(6).c_str(),
                torch::CppFunction::makeFromBoxedFunction<&collective_kernel>());
  }
}

}  // namespace torch_lazy
