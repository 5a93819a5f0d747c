// Outside `aten` an operator has a kernel for the CPU beside a composite one where its author wrote
// a faster one. The composite kernel hides the operator from the fallback of device `lazy`, and
// would be used where the CPU's should.
//
// The dispatcher tells of an operator when it is defined and when it is gone, with its own lock
// held and before there are kernels. So names are kept, and looked at later.
#include "device/new_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backend/execution_device.h"
#include "base/fork.h"
#include "device/boxed.h"

namespace torch_lazy {

std::atomic<bool> new_operators::are_there{false};

namespace {

using Names = std::unordered_set<c10::OperatorName>;

struct Operators {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what is below
  Names undecided;                        // with a composite kernel at most, as far as is known
  Names gone;
  // What is registered here, for as long as the operator is defined.
  std::unordered_map<c10::OperatorName, std::unique_ptr<torch::Library>> registered;
};

Operators& operators() {
  static auto* const instance = new Operators;
  return *instance;
}

class Listener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    const auto space = op.operator_name().getNamespace();
    if (!space || *space == "aten") return;  // see operator_registration.cpp
    const std::lock_guard<std::mutex> lock(operators().mutex);
    operators().undecided.insert(op.operator_name());
    new_operators::are_there.store(true, std::memory_order_relaxed);
  }
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    const std::lock_guard<std::mutex> lock(operators().mutex);
    operators().undecided.erase(op.operator_name());
    if (operators().registered.contains(op.operator_name())) {
      operators().gone.insert(op.operator_name());
      new_operators::are_there.store(true, std::memory_order_relaxed);
    }
  }
};

// Whether the execution device runs it whole: its own kernel goes before a composite one.
bool is_whole(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  return op.hasKernelForDispatchKey(execution_device().key) &&
         !op.hasKernelForDispatchKey(Key::Lazy) &&
         (op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional) ||
          op.hasKernelForDispatchKey(Key::CompositeImplicitAutograd));
}

std::unique_ptr<torch::Library> register_boxed_kernel(const c10::OperatorName& name) {
  const std::string space(*name.getNamespace());
  auto library = std::make_unique<torch::Library>(torch::Library::IMPL, space,
                                                  c10::DispatchKey::Lazy, __FILE__, __LINE__);
  library->impl(toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&boxed_kernel>());
  return library;
}

}  // namespace

void watch_for_new_operators() {
  // For good, as the dispatcher is.
  static auto* const watching = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
  (void)watching;
}

void register_new_operators() {
  // Of two threads the second need not wait: what is new again is looked at with the next call.
  static std::atomic<bool> is_under_way{false};
  if (!chosen_execution_device() || is_under_way.exchange(true)) return;
  Names undecided;
  std::vector<std::unique_ptr<torch::Library>> gone;  // destroyed without the lock
  {
    const std::lock_guard<std::mutex> lock(operators().mutex);
    new_operators::are_there.store(false, std::memory_order_relaxed);
    undecided = operators().undecided;
    for (const c10::OperatorName& name : std::exchange(operators().gone, {}))
      if (const auto node = operators().registered.extract(name))
        gone.push_back(std::move(node.mapped()));
  }
  gone.clear();
  // The dispatcher's lock is taken here, which the listener is called with.
  for (const c10::OperatorName& name : undecided) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !is_whole(*op)) continue;
    auto library = register_boxed_kernel(name);
    const std::lock_guard<std::mutex> lock(operators().mutex);
    operators().undecided.erase(name);
    operators().registered.emplace(name, std::move(library));
  }
  is_under_way = false;
}

}  // namespace torch_lazy
