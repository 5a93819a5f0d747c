// Outside `aten` an operator has a kernel for the CPU beside a composite one where its author wrote
// a faster one. The composite kernel hides the operator from the fallback of device `lazy`, and
// would be used where the CPU's should.
//
// The dispatcher tells of an operator when it is defined, with its own lock held and before there
// are kernels. So names are kept, and looked at when the next operation on a lazy tensor begins.
#include "device/new_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/immortal_library.h"
#include "device/boxed.h"

namespace torch_lazy {

std::atomic<bool> new_operators::are_there{false};

namespace {

struct NewNames {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards `names`
  std::vector<c10::OperatorName> names;
};

NewNames& new_names() {
  static auto* const instance = new NewNames;
  return *instance;
}

class Listener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    if (op.operator_name().getNamespace() == "aten") return;  // see boxed_registration.cpp
    const std::lock_guard<std::mutex> lock(new_names().mutex);
    new_names().names.push_back(op.operator_name());
    new_operators::are_there.store(true, std::memory_order_relaxed);
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}
};

bool is_whole_on_the_cpu(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  return op.hasKernelForDispatchKey(Key::CPU) && !op.hasKernelForDispatchKey(Key::Lazy) &&
         (op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional) ||
          op.hasKernelForDispatchKey(Key::CompositeImplicitAutograd));
}

}  // namespace

void watch_for_new_operators() {
  // For good, as the dispatcher is.
  static auto* const watching = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
  (void)watching;
}

void new_operators::register_those_whole_on_the_cpu() {
  std::vector<c10::OperatorName> names;
  {
    const std::lock_guard<std::mutex> lock(new_names().mutex);
    are_there.store(false, std::memory_order_relaxed);
    names.swap(new_names().names);
  }
  for (const c10::OperatorName& name : names) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !is_whole_on_the_cpu(*op)) continue;
    const std::string space(*name.getNamespace());
    immortal_library(torch::Library::IMPL, space.c_str(), c10::DispatchKey::Lazy)
        .impl(toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&boxed_kernel>());
  }
}

}  // namespace torch_lazy
