// The one thread state under which every operation runs on inner tensors, whatever the caller's.
#pragma once

#include <c10/core/AutogradState.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "memory/allocate_for_lazy.h"

namespace torch_lazy {

// Below autograd, autocast, functional transforms and Python's modes, outside inference mode
// (tensors made in it refuse later writes); memory comes from the allocator of lazy tensors.
// Restores the thread's state at its end.
class StepThreadState {
 public:
  StepThreadState() : autograd_(c10::AutogradState::get_tls_state()) {
    if (!autograd_.get_inference_mode()) return;
    c10::AutogradState plain = autograd_;
    plain.set_inference_mode(false);
    c10::AutogradState::set_tls_state(plain);
  }
  ~StepThreadState() {
    if (autograd_.get_inference_mode()) c10::AutogradState::set_tls_state(autograd_);
  }
  StepThreadState(const StepThreadState&) = delete;
  StepThreadState& operator=(const StepThreadState&) = delete;

 private:
  static constexpr c10::DispatchKeySet kIncluded{c10::DispatchKey::BackendSelect};
  static constexpr c10::DispatchKeySet kExcluded =
      c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView |
      c10::autocast_dispatch_keyset | c10::python_ks;

  const c10::AutogradState autograd_;
  const c10::impl::ForceDispatchKeyGuard keys_{kIncluded, kExcluded};
  const AllocateForLazy allocate_;
};

}  // namespace torch_lazy
