// The unboxed kernel: one template for all operators of a signature, without the stack.
//
// PyTorch boxes a call by copying its arguments, which for a tensor that Python holds takes the GIL
// twice: a microsecond for an operator of three tensors.
#pragma once

#include <torch/library.h>

#include <tuple>
#include <vector>

#include "device/call.h"
#include "device/devices_agree.h"
#include "device/dispatched_operation.h"
#include "device/generator.h"
#include "ops/thread_state.h"

namespace torch_lazy {

// An argument as the inner kernel takes it.
inline const at::Tensor& inner_argument(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  LazyTensorImpl* impl = lazy_impl(tensor);
  return impl ? impl->inner() : tensor;
}
inline at::Tensor& inner_argument(at::Tensor& tensor) {
  return const_cast<at::Tensor&>(inner_argument(std::as_const(tensor)));
}
inline std::optional<at::Tensor> inner_argument(const std::optional<at::Tensor>& tensor) {
  if (!tensor) return std::nullopt;
  return inner_argument(*tensor);
}
inline std::optional<c10::Device> inner_argument(std::optional<c10::Device> device) {
  if (!device) return std::nullopt;
  return inner_device(*device);
}
inline std::optional<at::Generator> inner_argument(const std::optional<at::Generator>& generator) {
  return inner_generator(generator);
}
inline std::vector<at::Tensor> inner_argument(at::ITensorListRef tensors) {
  std::vector<at::Tensor> list;
  list.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) list.push_back(inner_argument(tensor));
  return list;
}
inline std::vector<at::Tensor> inner_argument(at::TensorList tensors) {
  return inner_argument(at::ITensorListRef(tensors));
}
inline c10::List<std::optional<at::Tensor>> inner_argument(
    const c10::List<std::optional<at::Tensor>>& tensors) {
  c10::List<std::optional<at::Tensor>> list;
  list.reserve(tensors.size());
  for (const std::optional<at::Tensor> tensor : tensors) list.push_back(inner_argument(tensor));
  return list;
}
template <class Plain>
Plain inner_argument(Plain value) {
  return value;
}

// `argument`: its number in the schema.
inline void check_device(const OperatorInfo& op, size_t argument, const at::Tensor& tensor) {
  check_device_agrees(op, argument, tensor);
}
inline void check_device(const OperatorInfo& op, size_t argument,
                         const std::optional<at::Tensor>& tensor) {
  if (tensor) check_device_agrees(op, argument, *tensor);
}
inline void check_device(const OperatorInfo& op, size_t argument,
                         const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) check_device_agrees(op, argument, tensor);
}
inline void check_device(const OperatorInfo& op, size_t argument, const at::TensorList& tensors) {
  for (const at::Tensor& tensor : tensors) check_device_agrees(op, argument, tensor);
}
template <class Plain>
void check_device(const OperatorInfo&, size_t, const Plain&) {}

// The first argument taken by mutable reference: what an in-place or out= operator returns.
template <class... Arguments>
at::Tensor& returned_argument(Arguments&&... arguments) {
  at::Tensor* found = nullptr;
  const auto visit = [&](auto&& argument) {
    if constexpr (std::is_same_v<decltype(argument), at::Tensor&>)
      if (!found) found = &argument;
  };
  (visit(std::forward<Arguments>(arguments)), ...);
  return *found;
}

// How results of type R are made from inner ones, and from the outputs of a deferred operation.
template <class R>
struct Results;

template <>
struct Results<at::Tensor> {
  static at::Tensor wrap(Call& call, at::Tensor&& inner) { return call.wrap(std::move(inner)); }
  static at::Tensor deferred(std::span<at::Tensor> outputs) { return std::move(outputs[0]); }
};

template <>
struct Results<std::vector<at::Tensor>> {
  static std::vector<at::Tensor> wrap(Call& call, std::vector<at::Tensor> inner) {
    for (at::Tensor& tensor : inner) tensor = call.wrap(std::move(tensor));
    return inner;
  }
  static std::vector<at::Tensor> deferred(std::span<at::Tensor> outputs) {
    return {outputs.begin(), outputs.end()};
  }
};

template <class... Tensors>
struct Results<std::tuple<Tensors...>> {
  using Tuple = std::tuple<Tensors...>;
  static Tuple wrap(Call& call, Tuple inner) {
    std::apply([&](auto&... tensor) { ((tensor = call.wrap(std::move(tensor))), ...); }, inner);
    return inner;
  }
  static Tuple deferred(std::span<at::Tensor> outputs) {
    return from(outputs, std::index_sequence_for<Tensors...>{});
  }
  template <size_t... I>
  static Tuple from(std::span<at::Tensor> outputs, std::index_sequence<I...>) {
    return {std::move(outputs[I])...};
  }
};

// A call of an operator of this signature.
template <class Signature>
struct UnboxedCall;

template <class R, class... Arguments>
struct UnboxedCall<R(Arguments...)> {
  using Handle = c10::TypedOperatorHandle<R(Arguments...)>;

  static R run(const OperatorInfo& op, const Handle& handle, Arguments... arguments) {
    Call call(op);
    (call.inspect(arguments), ...);
    const DispatchMode mode = call.dispatch_mode();
    if (mode == DispatchMode::kMeta)
      return handle.redispatch(c10::DispatchKeySet(c10::DispatchKey::Meta), arguments...);
    if (!call.all_lazy() && !op.takes_cpu_tensors) {
      size_t argument = 0;
      (check_device(op, argument++, arguments), ...);
    }
    constexpr bool kReturnsArgument = std::is_same_v<R, at::Tensor&>;
    if (mode == DispatchMode::kTraced) {
      OpenOperation& operation = call.begin();
      (encode(operation, arguments), ...);
      if (call.match()) {
        const std::span<at::Tensor> outputs = call.deferred_outputs(!kReturnsArgument);
        if constexpr (kReturnsArgument)
          return returned_argument(static_cast<Arguments>(arguments)...);
        else
          return Results<R>::deferred(outputs);
      }
    }
    if constexpr (kReturnsArgument) {
      run_at_the_call(call, handle, arguments...);
      call.complete([&] { call.record_argument(size_t(op.returned_arguments[0])); });
      return returned_argument(static_cast<Arguments>(arguments)...);
    } else {
      auto inner = run_at_the_call(call, handle, arguments...);
      return call.complete([&] { return Results<R>::wrap(call, std::move(inner)); });
    }
  }

 private:
  static R run_at_the_call(Call& call, const Handle& handle, Arguments... arguments) {
    const StepThreadState state;
    const DispatchedOperation dispatched(call.op());
    const CollectWarnings collected(call.warnings());
    return handle.redispatch(inner_keys(), inner_argument(static_cast<Arguments>(arguments))...);
  }
};

// The kernel of an operator that is known where this is compiled.
template <class Operator, class Signature = typename Operator::schema>
struct Unboxed;

template <class Operator, class R, class... Arguments>
struct Unboxed<Operator, R(Arguments...)> {
  static R kernel(Arguments... arguments) {
    static const OperatorInfo& op = operator_info(Operator::name, Operator::overload_name);
    static const auto handle = op.handle.typed<R(Arguments...)>();
    return UnboxedCall<R(Arguments...)>::run(op, handle, static_cast<Arguments>(arguments)...);
  }
};

}  // namespace torch_lazy
