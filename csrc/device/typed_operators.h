// Unboxed kernels for all operators of a signature. Which operators of ATen have which signature is
// read from PyTorch's headers by the build (cmake/typed_operators.py), whose sources call
// TypedOperators::add.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/config.h"
#include "device/autocast.h"
#include "device/boxed.h"
#include "device/past_autograd.h"
#include "ops/special_keys.h"

namespace torch_lazy {

// Whether the boxed kernel takes a call: it leaves the choice of the inner kernel to the
// dispatcher.
inline bool is_boxed_for(const at::Tensor& tensor) {
  return has_special_key(tensor);
}
inline bool is_boxed_for(const std::optional<at::Tensor>& tensor) {
  return tensor && has_special_key(*tensor);
}
template <class Other>
bool is_boxed_for(const Other&) {
  return false;
}

// The kernel for dispatch key Lazy of one operator; with kIsComposite the boxed kernel that it
// stands for is composite_kernel.
template <class Signature, bool kIsComposite>
class TypedKernel;

template <class R, class... Arguments, bool kIsComposite>
class TypedKernel<R(Arguments...), kIsComposite> final : public c10::OperatorKernel {
 public:
  explicit TypedKernel(const c10::OperatorHandle& op) : handle_(op.typed<R(Arguments...)>()) {}

  R operator()(Arguments... arguments) {
    const bool in_parts = kIsComposite && is_autocast_active();
    const bool is_checked = config().check_effects.load(std::memory_order_relaxed);
    if (in_parts || is_checked || (is_boxed_for(arguments) || ...)) [[unlikely]]
      return boxed(static_cast<Arguments>(arguments)...);
    return UnboxedCall<R(Arguments...)>::run(info(), handle_, static_cast<Arguments>(arguments)...);
  }

 private:
  R boxed(Arguments... arguments) {
    constexpr auto kKernel = kIsComposite ? &composite_kernel : &boxed_kernel;
    return c10::impl::BoxedKernelWrapper<R(Arguments...)>::call(
        c10::BoxedKernel::makeFromFunction<kKernel>(), handle_, c10::DispatchKeySet(),
        static_cast<Arguments>(arguments)...);
  }
  // Looked up by the first call: a program calls few of all operators.
  const OperatorInfo& info() {
    const OperatorInfo* known = info_.load(std::memory_order_acquire);
    if (!known) [[unlikely]] {
      known = &operator_info(handle_);
      info_.store(known, std::memory_order_release);
    }
    return *known;
  }

  const c10::TypedOperatorHandle<R(Arguments...)> handle_;
  std::atomic<const OperatorInfo*> info_{nullptr};
};

// The kernel for dispatch key AutogradLazy of one operator.
template <class Signature>
class TypedPastAutograd;

template <class R, class... Arguments>
class TypedPastAutograd<R(Arguments...)> final : public c10::OperatorKernel {
 public:
  explicit TypedPastAutograd(const c10::OperatorHandle& op)
      : handle_(op.typed<R(Arguments...)>()) {}

  R operator()(c10::DispatchKeySet keys, Arguments... arguments) {
    return PastAutograd<R(Arguments...)>::run(handle_, keys, static_cast<Arguments>(arguments)...);
  }

 private:
  const c10::TypedOperatorHandle<R(Arguments...)> handle_;
};

class TypedOperators {
 public:
  using MakeKernel = c10::KernelFunction (*)(const c10::OperatorHandle& op);
  struct Kernels {
    c10::impl::CppSignature signature;
    MakeKernel kernel;
    // Null where no kernel past autograd could count the versions of all that is written.
    MakeKernel past_autograd;
    bool is_composite;  // as TypedKernel is
  };

  // `operators`: qualified names, "aten::add.Tensor".
  template <class Signature>
  void add(std::initializer_list<const char*> operators) {
    add<Signature, false>(operators);
  }
  template <class Signature>
  void add_composites(std::initializer_list<const char*> operators) {
    add<Signature, true>(operators);
  }

  // Null where the operator has no such kernels.
  const Kernels* find(const c10::OperatorHandle& op) const;

 private:
  template <class Kernel>
  static c10::KernelFunction make(const c10::OperatorHandle& op) {
    return c10::KernelFunction::makeFromUnboxedFunctor<false, Kernel>(std::make_unique<Kernel>(op));
  }
  template <class Signature, bool kIsComposite>
  void add(std::initializer_list<const char*> operators) {
    MakeKernel past_autograd = nullptr;
    if constexpr (PastAutograd<Signature>::kFits)
      past_autograd = &make<TypedPastAutograd<Signature>>;
    const Kernels kernels{c10::impl::CppSignature::make<Signature>(),
                          &make<TypedKernel<Signature, kIsComposite>>, past_autograd, kIsComposite};
    for (const char* const name : operators) kernels_.emplace(name, kernels);
  }

  std::unordered_map<std::string, Kernels> kernels_;
};

// Of the build's sources: adds all operators.
void add_typed_operators(TypedOperators& operators);

}  // namespace torch_lazy
