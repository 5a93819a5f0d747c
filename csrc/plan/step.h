// One operation of a window made ready to run: its operator, its constants decoded, its tensors by
// value slot. Plans have steps for what kernels do not compute, and the recorder runs a tape as
// steps when it has to run a window without an executable.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <optional>
#include <vector>

#include "backend/backend.h"
#include "ops/operator_info.h"
#include "tape/tape.h"

namespace torch_lazy {

// A flag of a Step's operand beside TensorFlag: the value's own conj and neg bits are the right
// ones.
constexpr uint8_t kPassAsIs = 0x80;
// Another: what is passed is no tensor but the number that the 0-dim CPU tensor holds.
constexpr uint8_t kAsNumber = 0x40;

struct Step {
  const OperatorInfo* op;
  std::vector<Operand> operands;
  // The slot each flattened tensor return goes to; -1: the return is an argument itself, or
  // undefined.
  std::vector<int64_t> outputs;
  // For a return that is an argument with new metadata (t_, resize_): the argument is passed as an
  // alias of its own, so that other uses of its old value keep their metadata.
  std::vector<uint32_t> rebound;  // value slots to pass as aliases
  // Values that no later step reads; their memory is released after this one. In a plan PlanStep
  // says it.
  std::vector<uint32_t> released;
};

// Values of a run by slot. A slot is undefined before its step ran and after its release.
using Values = std::vector<at::Tensor>;

// The slots of values, list elements included.
template <typename Visit>
void for_each_value(const std::vector<Operand>& operands, const Visit& visit) {
  for (const Operand& operand : operands) {
    if (operand.kind == Operand::Kind::kValue) visit(operand.value);
    for (const Operand& element : operand.elements)
      if (element.kind == Operand::Kind::kValue) visit(element.value);
  }
}

// Fills `released` for every step, keeping the given values.
void plan_releases(std::vector<Step>& steps, c10::ArrayRef<uint32_t> kept);

// Runs one step after the other on one stack, so that a step allocates nothing for its operands.
// The thread is in a StepThreadState.
class StepRunner {
 public:
  StepRunner(Values& values, c10::Device device);
  void run(const Step& step);

 private:
  void push(const Step& step, const Operand& operand);
  c10::IValue number(const Operand& operand) const;
  at::Tensor list_element(const Step& step, const Operand& element);
  at::Tensor special(const Step& step, const Operand& operand, const at::Tensor& tensor);
  void take_returns(const Step& step);

  Values& values_;
  const c10::DispatchKeySet keys_;
  torch::jit::Stack stack_;
  bool special_ = false;  // the step being run has an operand with special keys
};

// Runs steps in order below autograd, autocast and modes, on the backend's dispatch key. Stops at
// the first that raises and says which. `device` is where the backend's tensors live.
std::optional<RunFailure> run_steps(const std::vector<Step>& steps, Values& values,
                                    c10::Device device);

// Gives a constant operand the type that the argument declares; see argument_constant(). None
// becomes an undefined tensor where a Tensor is declared.
void prepare_operand(Operand& operand, const c10::TypePtr& formal, c10::Device device);

// A result as it is kept. Zeros without memory get some: whoever gets them as an output reads
// memory. What does not begin where its memory does is copied: tapes and kernels take for granted
// that it does, and some operators (slice_scatter of a slice) clone all of their argument's memory.
at::Tensor kept_result(at::Tensor&& made);

// Runs one operator on tensors of the execution device under the one thread state every step has:
// below autograd, no autocast, no modes.
void run_below_autograd(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The step of an operation on a tape.
Step step_from_tape(const Tape& tape, size_t index, std::vector<InputMetadata>* inputs,
                    c10::Device device);

}  // namespace torch_lazy
