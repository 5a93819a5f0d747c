#include "plan/step.h"

#include <ATen/ops/alias.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/execution_device.h"
#include "base/config.h"
#include "base/warn.h"
#include "ir/argument_constant.h"
#include "ops/effects_check.h"
#include "ops/special_keys.h"
#include "ops/thread_state.h"
#include "plan/step_range.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

// An alias of the tensor that carries the flags the operand was passed with.
at::Tensor pass_with_flags(const at::Tensor& tensor, uint8_t flags) {
  at::Tensor alias = at::alias(tensor);
  if (flags & kPassAsIs) return alias;
  if (alias.is_conj() != bool(flags & kConj)) alias._set_conj(flags & kConj);
  if (alias.is_neg() != bool(flags & kNeg)) alias._set_neg(flags & kNeg);
  if (flags & kWrappedNumber) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  return alias;
}

// TORCH_LAZY_CHECK_EFFECTS=1: an operator did what ops/effects says it does not.
void report_effects(const std::string& contradiction) {
  if (!contradiction.empty()) warn(contradiction);
}

bool plain(const Step& step, const Operand& operand, const at::Tensor& tensor) {
  return !has_special_key(tensor) && (operand.flags & ~kPassAsIs) == 0 && step.rebound.empty();
}

}  // namespace

StepRunner::StepRunner(Values& values, c10::Device device)
    : values_(values), keys_(c10::computeDispatchKey(std::nullopt, std::nullopt, device)) {
  stack_.reserve(32);
}

void StepRunner::run(const Step& step) {
  special_ = false;
  for (const Operand& operand : step.operands) push(step, operand);
  // With special keys in play the dispatcher itself must choose: some of them fall through.
  std::optional<EffectsCheck> check;
  if (config().check_effects) [[unlikely]]
    check.emplace(step.op->handle, stack_);
  if (special_) [[unlikely]]
    step.op->handle.callBoxed(&stack_);
  else
    step.op->handle.redispatchBoxed(keys_, &stack_);
  if (check) report_effects(check->finish(stack_));
  take_returns(step);
  stack_.clear();
  for (const uint32_t slot : step.released) values_[slot].reset();
}

void StepRunner::push(const Step& step, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kConstant:
      stack_.push_back(operand.constant);
      return;
    case Operand::Kind::kValue: {
      const at::Tensor& tensor = values_[operand.value];
      if (plain(step, operand, tensor)) [[likely]]
        stack_.emplace_back(tensor);
      else if (operand.flags & kAsNumber)
        stack_.push_back(number(operand));
      else
        stack_.emplace_back(special(step, operand, tensor));
      return;
    }
    case Operand::Kind::kTensorList: {
      c10::List<at::Tensor> list;
      list.reserve(operand.elements.size());
      for (const Operand& element : operand.elements) list.push_back(list_element(step, element));
      stack_.emplace_back(std::move(list));
      return;
    }
    case Operand::Kind::kOptionalTensorList: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(operand.elements.size());
      for (const Operand& element : operand.elements) {
        at::Tensor tensor = list_element(step, element);
        list.push_back(tensor.defined() ? std::optional(std::move(tensor)) : std::nullopt);
      }
      stack_.emplace_back(std::move(list));
      return;
    }
    case Operand::Kind::kScalarList: {
      c10::impl::GenericList list(c10::NumberType::get());
      list.reserve(operand.elements.size());
      for (const Operand& element : operand.elements) list.push_back(number(element));
      stack_.emplace_back(std::move(list));
      return;
    }
  }
}

c10::IValue StepRunner::number(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kConstant) return operand.constant;
  return *values_[operand.value].const_data_ptr<double>();
}

at::Tensor StepRunner::list_element(const Step& step, const Operand& element) {
  if (element.kind == Operand::Kind::kConstant)
    return element.constant.isTensor() ? element.constant.toTensor() : at::Tensor();
  const at::Tensor& tensor = values_[element.value];
  return plain(step, element, tensor) ? tensor : special(step, element, tensor);
}

at::Tensor StepRunner::special(const Step& step, const Operand& operand, const at::Tensor& tensor) {
  at::Tensor passed = tensor;
  const uint8_t has = uint8_t(tensor.is_conj() ? kConj : 0) | uint8_t(tensor.is_neg() ? kNeg : 0);
  const bool rebound =
      std::find(step.rebound.begin(), step.rebound.end(), operand.value) != step.rebound.end();
  if (rebound || (!(operand.flags & kPassAsIs) && operand.flags != has))
    passed = pass_with_flags(tensor, operand.flags);
  special_ |= has_special_key(passed);
  return passed;
}

at::Tensor kept_result(at::Tensor&& made) {
  if (!made.defined()) return std::move(made);
  if (made._is_zerotensor()) [[unlikely]]
    return at::zeros(made.sizes(), made.options());
  const c10::TensorImpl& impl = *made.unsafeGetTensorImpl();
  // What shares its memory is a view of it.
  if (!impl.has_storage() || impl.layout() != c10::kStrided || impl.storage_offset() == 0 ||
      !impl.unsafe_storage().unique()) [[likely]]
    return std::move(made);
  at::Tensor copy = at::empty_strided(made.sizes(), made.strides(), made.options());
  copy.copy_(made);
  return copy;
}

void StepRunner::take_returns(const Step& step) {
  size_t next = 0;
  const auto take = [&](at::Tensor tensor) {
    const int64_t slot = next < step.outputs.size() ? step.outputs[next] : -1;
    ++next;
    if (slot >= 0) values_[slot] = kept_result(std::move(tensor));
  };
  for (c10::IValue& value : stack_) {
    if (value.isTensor()) {
      take(std::move(value).toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list = std::move(value).toTensorList();
      for (size_t i = 0; i < list.size(); ++i) take(list.extract(i));
    }
  }
}

void prepare_operand(Operand& operand, const c10::TypePtr& formal, c10::Device device) {
  if (operand.kind != Operand::Kind::kConstant) return;
  if (operand.constant.isNone() && formal->kind() == c10::TypeKind::TensorType)
    operand.constant = at::Tensor();
  else
    operand.constant = argument_constant(operand.constant, formal, device);
}

void plan_releases(std::vector<Step>& steps, c10::ArrayRef<uint32_t> kept) {
  std::vector<bool> settled;  // by slot: kept, or released by a later step
  const auto settle = [&](uint32_t slot) {
    if (slot >= settled.size()) settled.resize(slot + 1);
    const bool first = !settled[slot];
    settled[slot] = true;
    return first;
  };
  for (const uint32_t slot : kept) settle(slot);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    step->released.clear();
    const auto release = [&](uint32_t slot) {
      if (settle(slot)) step->released.push_back(slot);
    };
    for (const int64_t slot : step->outputs)
      if (slot >= 0) release(uint32_t(slot));
    for_each_value(step->operands, release);
  }
}

std::optional<RunFailure> run_steps(const std::vector<Step>& steps, Values& values,
                                    c10::Device device) {
  const StepThreadState state;
  StepRunner runner(values, device);
  const bool shown = shows_steps();
  RunningWindow* const running = RunningWindow::of_thread();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (running) [[unlikely]]
      running->enter(int64_t(i));
    std::optional<StepRange> range;
    if (shown) [[unlikely]]
      range.emplace(steps[i], i, values);
    try {
      runner.run(steps[i]);
    } catch (...) {
      return RunFailure{i, std::current_exception()};
    }
  }
  return std::nullopt;
}

void run_below_autograd(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const StepThreadState state;
  const size_t count = op.schema().arguments().size();
  const c10::ArrayRef<c10::IValue> arguments(stack->data() + stack->size() - count, count);
  const bool special =
      std::any_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
        return value.isTensor() && has_special_key(value.toTensor());
      });
  const size_t base = stack->size() - count;
  std::optional<EffectsCheck> check;
  if (config().check_effects) [[unlikely]]
    check.emplace(op, arguments);
  if (special) [[unlikely]]
    op.callBoxed(stack);
  else
    op.redispatchBoxed(c10::DispatchKeySet(execution_device().key), stack);
  if (!check) return;
  const c10::ArrayRef<c10::IValue> returns(stack->data() + base, stack->size() - base);
  report_effects(check->finish(returns));
}

Step step_from_tape(const Tape& tape, size_t index, std::vector<InputMetadata>* inputs,
                    c10::Device device) {
  Step step;
  step.op = tape.entry(index).op;
  const c10::FunctionSchema& schema = step.op->handle.schema();
  step.operands = decode_operands(tape.words(index), inputs);
  for (size_t i = 0; i < step.operands.size(); ++i)
    prepare_operand(step.operands[i], schema.arguments().at(i).type(), device);
  std::vector<uint32_t> arguments;
  for_each_value(step.operands, [&](uint32_t value) { arguments.push_back(value); });
  for (const OutputMetadata& output : decode_outputs(tape.outputs(index))) {
    const bool made = output.kind != OutputMetadata::Kind::kUndefined &&
                      output.kind != OutputMetadata::Kind::kArgument;
    step.outputs.push_back(made ? int64_t(output.value) : -1);
    if (output.kind == OutputMetadata::Kind::kArgumentRebound)
      step.rebound.push_back(arguments.at(output.source));
  }
  return step;
}

}  // namespace torch_lazy
