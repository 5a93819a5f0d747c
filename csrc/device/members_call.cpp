#include "device/members_call.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/immortal_library.h"
#include "device/boxed.h"
#include "device/call.h"
#include "device/collectives.h"
#include "device/dispatched_operation.h"
#include "device/members.h"
#include "offload/host_call.h"
#include "offload/runtime_device.h"
#include "ops/replace_tensors.h"
#include "ops/same_elements.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// Where they run: on the host for a device that has none of their kernels.
c10::Device device_of_run(c10::Device device) {
  const bool on_host = is_offloaded() && device.type() == c10::DeviceType::Lazy;
  return on_host ? c10::Device(c10::kCPU) : inner_device(device);
}

bool has_lazy_members(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::Lazy && has_members(tensor);
}

// One run. Arguments are made inner ones before it, results lazy ones after it.
class MembersCall {
 public:
  explicit MembersCall(const OperatorInfo& op) : op_(op) {}

  // `written`: by the operator.
  c10::IValue inner(const c10::IValue& value, bool written) {
    if (value.isDevice()) {
      makes_elsewhere_ = value.toDevice().type() != c10::DeviceType::Lazy;
      return device_of_run(value.toDevice());
    }
    if (value.isGenerator()) return inner_value(value);
    if (value.isStorage()) return inner(value.toStorage());
    return replace_tensors(
        value, [this, written](const at::Tensor& tensor) { return inner(tensor, written); });
  }

  // What an argument has become that the operator wrote to.
  void write_back(const c10::IValue& argument, const c10::IValue& inner) {
    if (argument.isTensor()) return write_back(argument.toTensor(), inner.toTensor());
    if (!argument.isTensorList()) return;
    const auto arguments = argument.toTensorList(), inners = inner.toTensorList();
    for (size_t i = 0; i < arguments.size(); ++i) write_back(arguments.get(i), inners.get(i));
  }

  at::Tensor wrap(const at::Tensor& inner) {
    if (!inner.defined() || makes_elsewhere_) return inner;
    for (const Part& argument : arguments_)
      if (argument.inner.is_same(inner)) return argument.lazy;
    // Zeros without memory; here they get some.
    if (inner._is_zerotensor()) return wrap(at::zeros(inner.sizes(), inner.options()));
    if (inner.layout() == c10::kStrided && !inner.is_quantized() && !inner.is_nested())
      return wrap_strided(inner, part_with_memory_of(inner));
    TORCH_CHECK_NOT_IMPLEMENTED(has_members(inner), op_.name, " returned a ", inner.layout(),
                                " tensor, and device lazy has none: call it on the cpu");
    return assemble(inner, wrap_members(inner),
                    lazy_device(lazy_index(is_offloaded() ? device_ : inner.device())));
  }

 private:
  // A lazy tensor that takes part, and the one that the operator sees. No lazy tensor is over the
  // memory of a quantizer.
  struct Part {
    at::Tensor lazy;
    at::Tensor inner;
  };

  // One tensor for each: an operator may ask whether two of its arguments are the same.
  at::Tensor inner(const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    for (const Part& known : arguments_)
      if (known.lazy.is_same(tensor)) return known.inner;
    at::Tensor made = has_lazy_members(tensor) ? inner_assembled(tensor) : inner_strided(tensor);
    if (needs_gradients_ && !written && tensor.requires_grad()) made = with_gradient(made);
    arguments_.push_back({tensor, made});
    return made;
  }

  at::Tensor inner_assembled(const at::Tensor& tensor) {
    for (const at::Tensor& parameter : parameters_of(tensor)) parts_.push_back({{}, parameter});
    Members members = members_of(tensor);
    for (at::Tensor& member : members) member = inner_strided(member);
    return assemble(tensor, members, device_of_run(tensor.device()));
  }

  // A kernel may ask whether gradients will be needed, and keep then what only they need. Autograd
  // is above it all the same.
  static at::Tensor with_gradient(const at::Tensor& inner) {
    at::Tensor copy(inner.unsafeGetTensorImpl()->shallow_copy_and_detach(
        c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
    copy.set_requires_grad(true);
    return copy;
  }

  c10::Storage inner(const c10::Storage& storage) {
    if (storage.device_type() != c10::DeviceType::Lazy) return storage;
    at::Tensor bytes = at::detail::make_tensor<LazyTensorImpl>(
        c10::Storage(storage), c10::scalarTypeToTypeMeta(c10::kByte));
    bytes.unsafeGetTensorImpl()->set_sizes_contiguous({int64_t(storage.nbytes())});
    return inner_strided(bytes).storage();
  }

  at::Tensor inner_strided(const at::Tensor& tensor) {
    LazyTensorImpl* const impl = lazy_impl(tensor);
    if (!impl) return tensor;
    Recorder& recorder = Recorder::current();
    recorder.resolve(impl->binding, impl->state());
    if (!std::exchange(synchronized_, true)) recorder.sync(Flush::by(op_));
    const at::Tensor& inner = impl->inner();
    device_ = inner.device();
    // Which of its tensors an operator writes is seen at its end.
    parts_.push_back(
        {tensor, mirrored(inner.storage()) ? lent_on_host(inner, Access::kRead, op_.name) : inner});
    return parts_.back().inner;
  }

  void write_back(const at::Tensor& argument, const at::Tensor& inner) {
    if (has_lazy_members(argument)) {
      for (const at::Tensor& member : members_of(inner)) {
        const Part* const part = part_with_memory_of(member);
        if (part && part->lazy.defined()) take_back(*lazy_impl(part->lazy), part->inner);
      }
      reassemble(argument, inner, wrap_members(inner));
    } else if (LazyTensorImpl* const strided = lazy_impl(argument)) {
      take_back(*strided, inner);
    }
  }
  // The operator wrote to it, and may have given it other sizes or more memory.
  static void take_back(LazyTensorImpl& lazy, const at::Tensor& inner) {
    if (is_offloaded()) take_back_from_host(lazy.inner(), inner);
    if (lazy.take_over_inner_metadata()) lazy.binding = {};
  }

  Members wrap_members(const at::Tensor& inner) {
    Members members = members_of(inner);
    for (at::Tensor& member : members) {
      const Part* const part = part_with_memory_of(member);
      const bool known = part && part->lazy.defined() && are_same_elements(member, part->inner);
      member = known ? part->lazy : wrap_strided(member, part);
    }
    return members;
  }

  // A lazy tensor of the same bytes. What shares memory with a lazy tensor that takes part is a
  // view of its storage, for two storages never have one memory.
  at::Tensor wrap_strided(const at::Tensor& inner, const Part* part) {
    at::Tensor wrapped;
    if (!part) {
      wrapped = wrap_inner(is_offloaded() ? adopted_from_host(inner, device_) : at::Tensor(inner));
    } else if (part->lazy.defined()) {
      LazyTensorImpl& base = *lazy_impl(part->lazy);
      wrapped = wrap_inner_view(
          is_offloaded() ? viewed_on_device(inner, base.inner()) : at::Tensor(inner),
          base.storage(), base.key_set());
    } else {
      return wrap_strided(inner.clone(), nullptr);
    }
    parts_.push_back({wrapped, inner});
    return wrapped;
  }

  const Part* part_with_memory_of(const at::Tensor& inner) const {
    const Part* found = nullptr;
    for (const Part& part : parts_) {
      if (!inner.storage().is_alias_of(part.inner.storage())) continue;
      if (are_same_elements(inner, part.inner)) return &part;
      if (!found) found = &part;
    }
    return found;
  }

  const OperatorInfo& op_;
  bool makes_elsewhere_ = false;  // the call names another device for its results
  bool synchronized_ = false;     // nothing of this thread is pending any more
  c10::Device device_ =
      execution_device().device(-1);  // of the last strided tensor that it was given
  const bool needs_gradients_ = c10::GradMode::is_enabled();
  std::vector<Part> parts_;      // strided ones
  std::vector<Part> arguments_;  // of any kind
};

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

}  // namespace

void members_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const OperatorInfo& info = operator_info(op);
  const size_t count = schema.arguments().size();
  const size_t base = stack->size() - count;
  // Collectives write the tensors of their lists, which no schema says, and may still be at it.
  const bool collective = op.operator_name().getNamespace() == "c10d";
  const std::vector<c10::IValue> arguments(stack->begin() + int64_t(base), stack->end());
  std::vector<c10::IValue> inner;
  MembersCall call(info);
  {
    const StepThreadState state;
    for (size_t i = 0; i < count; ++i)
      (*stack)[base + i] = call.inner(arguments[i], is_written(schema.arguments()[i]));
    inner.assign(stack->begin() + int64_t(base), stack->end());
    const DispatchedOperation dispatched(info);
    // By its arguments: an operator may have sparse and strided ones, and the CPU a kernel for
    // each.
    op.callBoxed(stack);
    if (collective)
      for (size_t i = base; i < stack->size(); ++i) wait_if_work((*stack)[i]);
  }
  for (size_t i = 0; i < count; ++i)
    if (collective || is_written(schema.arguments()[i])) call.write_back(arguments[i], inner[i]);
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    c10::IValue& value = (*stack)[base + i];
    if (value.isTensor()) {
      const int source = info.returned_arguments[i];
      value = source >= 0 ? arguments[size_t(source)] : call.wrap(value.toTensor());
    } else {
      value =
          replace_tensors(value, [&call](const at::Tensor& tensor) { return call.wrap(tensor); });
    }
  }
}

void register_members_fallback(c10::DispatchKey key) {
  immortal_library(torch::Library::IMPL, "_", key)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&members_kernel>());
}

void register_members_kernel(c10::DispatchKey key, bool (*applies)(const c10::OperatorHandle&),
                             std::initializer_list<std::string_view> names) {
  torch::Library& library = immortal_library(torch::Library::IMPL, "aten", key);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto begins_so = [&](std::string_view begin) { return name.name.starts_with(begin); };
    if (std::none_of(names.begin(), names.end(), begins_so)) continue;
    const auto op = dispatcher.findSchema(name);
    if (op && !op->hasKernelForDispatchKey(key) && applies(*op))
      library.impl(c10::toString(name).substr(std::string_view("aten::").size()).c_str(),
                   torch::CppFunction::makeFromBoxedFunction<&members_kernel>());
  }
}

}  // namespace torch_lazy
