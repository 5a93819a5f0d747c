// Unboxed kernels for all operators of a signature. Which operators of ATen have which signature is
// read from PyTorch's headers by the build (cmake/typed_operators.py), whose sources call
// TypedOperators::add.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>

#include "device/autocast.h"
#include "device/boxed.h"
#include "device/past_autograd.h"

namespace torch_lazy {

// The kernel for dispatch key Lazy of one operator.
template <class Signature>
class TypedKernel;

template <class R, class... Arguments>
class TypedKernel<R(Arguments...)> final : public c10::OperatorKernel {
 public:
  explicit TypedKernel(const c10::OperatorHandle& op) : handle_(op.typed<R(Arguments...)>()) {}

  R operator()(Arguments... arguments) {
    return UnboxedCall<R(Arguments...)>::run(info(), handle_, static_cast<Arguments>(arguments)...);
  }

 private:
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

// The same where composite_kernel is the boxed one.
template <class Signature>
class TypedCompositeKernel;

template <class R, class... Arguments>
class TypedCompositeKernel<R(Arguments...)> final : public c10::OperatorKernel {
 public:
  explicit TypedCompositeKernel(const c10::OperatorHandle& op) : handle_(op), kernel_(op) {}

  R operator()(c10::DispatchKeySet keys, Arguments... arguments) {
    if (is_autocast_active()) [[unlikely]]
      return boxed_.call<R, Arguments...>(handle_, keys, static_cast<Arguments>(arguments)...);
    return kernel_(static_cast<Arguments>(arguments)...);
  }

 private:
  const c10::OperatorHandle handle_;
  const c10::KernelFunction boxed_ =
      c10::KernelFunction::makeFromBoxedFunction<&composite_kernel>();
  TypedKernel<R(Arguments...)> kernel_;
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
    bool is_composite;  // `kernel` makes a TypedCompositeKernel
  };

  // `operators`: qualified names, "aten::add.Tensor".
  template <class Signature>
  void add(std::initializer_list<const char*> operators) {
    add<TypedKernel<Signature>, Signature>(operators, false);
  }
  template <class Signature>
  void add_composites(std::initializer_list<const char*> operators) {
    add<TypedCompositeKernel<Signature>, Signature>(operators, true);
  }

  // Null where the operator has no such kernels.
  const Kernels* find(const c10::OperatorHandle& op) const;

 private:
  template <class Kernel>
  static c10::KernelFunction make(const c10::OperatorHandle& op) {
    return c10::KernelFunction::makeFromUnboxedFunctor<false, Kernel>(std::make_unique<Kernel>(op));
  }
  template <class Kernel, class Signature>
  void add(std::initializer_list<const char*> operators, bool is_composite) {
    MakeKernel past_autograd = nullptr;
    if constexpr (PastAutograd<Signature>::kFits)
      past_autograd = &make<TypedPastAutograd<Signature>>;
    const Kernels kernels{c10::impl::CppSignature::make<Signature>(), &make<Kernel>, past_autograd,
                          is_composite};
    for (const char* const name : operators) kernels_.emplace(name, kernels);
  }

  std::unordered_map<std::string, Kernels> kernels_;
};

// Of the build's sources: adds all operators.
void add_typed_operators(TypedOperators& operators);

}  // namespace torch_lazy
