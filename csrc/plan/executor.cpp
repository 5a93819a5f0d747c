#include "plan/executor.h"

#include <ATen/ops/any.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/lt.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <chrono>
#include <forward_list>
#include <functional>
#include <optional>

#include "backend/late_failure.h"
#include "base/config.h"
#include "base/debug.h"
#include "ir/print.h"
#include "offload/copy_on_device.h"
#include "offload/mirrored_storage.h"
#include "plan/step_range.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

using Clock = std::chrono::steady_clock;

// A tensor over the storage of another, without a dispatch.
at::Tensor view_of(const at::Tensor& base, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   int64_t offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), base.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

// Inputs have no conj and neg bits: where they matter the graph has operators that set them.
at::Tensor without_bits(const at::Tensor& tensor) {
  if (!tensor.is_conj() && !tensor.is_neg()) return tensor;
  at::Tensor alias = view_of(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  alias._set_conj(false);
  alias._set_neg(false);
  return alias;
}

bool is_as_expected(const ExpectedValue& expected, const at::Tensor& made) {
  if (!expected.defined || !made.defined()) return expected.defined == made.defined();
  return made.scalar_type() == expected.dtype && made.sizes() == c10::IntArrayRef(expected.sizes) &&
         (expected.strides.empty() || made.strides() == c10::IntArrayRef(expected.strides));
}

// Is told what a step took. The cost has a name only where steps are shown.
using StepObserver =
    std::function<void(const PlanStep&, const StepCost&, std::chrono::nanoseconds)>;

class Run {
 public:
  Run(const Plan& plan, const Launcher& launcher, c10::ArrayRef<at::Tensor> inputs)
      : plan_(plan), launcher_(launcher), values_(plan.slots), runner_(values_, launcher.device()) {
    TORCH_CHECK(inputs.size() == plan_.inputs.size(), "the window takes ", plan_.inputs.size(),
                " inputs, it was given ", inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) values_[plan_.inputs[i]] = without_bits(inputs[i]);
  }

  // `observer` may be null.
  RunResult run(const StepObserver* observer) {
    RunResult result;
    size_t at = 0;
    try {
      if (plan_.arena_bytes > 0) arena_ = launcher_.allocate(size_t(plan_.arena_bytes));
      for (; at < plan_.steps.size(); ++at) {
        const PlanStep& step = plan_.steps[at];
        if (running_) [[unlikely]]
          running_->enter(step.origin);
        if (observer == nullptr && !blocking_ && !shown_) [[likely]]
          perform(step);
        else
          perform_watched(step, observer);
        for (const uint32_t slot : step.released) values_[slot].reset();
      }
    } catch (...) {
      const int64_t origin = plan_.steps.empty() ? 0 : plan_.steps[at].origin;
      result.failure = RunFailure{size_t(origin), std::current_exception()};
      result.unchanged = at < plan_.first_write;
    }
    const bool valid = !result.failure || plan_.as_recorded;
    for (const uint32_t slot : plan_.outputs)
      result.outputs.push_back(valid ? values_[slot] : at::Tensor());
    return result;
  }

 private:
  void perform(const PlanStep& step) {
    std::visit([&](const auto& action) { perform(action); }, step.action);
  }

  void perform_watched(const PlanStep& step, const StepObserver* observer) {
    const StepCost cost =
        shown_ || config().debug >= kDebugGraphs ? cost_of(step, values_) : StepCost();
    std::optional<StepRange> range;
    if (shown_) range.emplace(step, cost, values_);
    const Clock::time_point begin = Clock::now();
    perform(step);
    // PyTorch's profiler asks devices themselves what they do, and would be misled by a wait.
    if (observer || blocking_ || is_logging()) wait_for_device();
    if (observer) (*observer)(step, cost, Clock::now() - begin);
  }

  void wait_for_device() const {
    const c10::Device device = launcher_.device();
    if (device.is_cpu()) return;
    c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
    raise_found_failures();
  }

  void perform(const AllocateStep& step) {
    values_[step.slot] = launcher_.empty(step.sizes, step.strides, step.dtype);
  }

  void perform(const ConstantStep& step) {
    if (step.value.device() == launcher_.device() && !launcher_.device().is_cpu()) {
      values_[step.slot] = launcher_.empty({}, {}, step.value.scalar_type());
      return copy(values_[step.slot], step.value);
    }
    // Elsewhere filled by a number in the call, which needs no copy from the host.
    values_[step.slot] =
        launcher_.device().is_cpu()
            ? step.value.clone()
            : at::full({}, step.value.item(), step.value.options().device(launcher_.device()));
  }

  void perform(const ViewStep& step) {
    const at::Tensor& base = values_[step.base];
    values_[step.slot] = view_of(base, step.layout.sizes, step.layout.strides,
                                 base.storage_offset() + step.layout.offset);
  }

  void perform(const CopyStep& step) {
    const at::Tensor &source = values_[step.source], &target = values_[step.target];
    // A number that the program changes.
    if (source.is_cpu() && !target.is_cpu() && source.dim() == 0)
      target.fill_(source.item());
    else
      copy(target, source);
  }

  static void copy(const at::Tensor& target, const at::Tensor& source) {
    if (!copy_on_device(target, source)) target.copy_(source);
  }

  void perform(const CheckStep& step) {
    if (launcher_.all_within(values_[step.indices], step.limit)) return;
    TORCH_CHECK_INDEX(false, "index out of range in ", step.name);
  }

  void perform(const LibraryStep& step) {
    runner_.run(step.step);
    for (const ExpectedValue& expected : step.expected)
      TORCH_CHECK(is_as_expected(expected, values_[expected.slot]), step.step.op->name, " made ",
                  describe(values_[expected.slot]), " for ", expected.recorded);
    for (const LibraryStep::Output& output : step.outputs) lay_out(output);
  }

  void lay_out(const LibraryStep::Output& output) {
    at::Tensor& made = values_[output.slot];
    if (!made.defined()) return;
    if (made.strides() == c10::IntArrayRef(output.strides) && made.storage_offset() == 0) return;
    at::Tensor laid_out = launcher_.empty(output.sizes, output.strides, made.scalar_type());
    laid_out.copy_(made);
    made = std::move(laid_out);
  }

  void perform(const OperatorStep& step) {
    pointers_.clear();
    DeviceAddresses addresses;
    for (size_t i = 0; i < step.slots.size(); ++i) {
      const at::Tensor& value = values_[step.slots[i]];
      TORCH_INTERNAL_ASSERT(value.device() == launcher_.device(), step.name, " is given %",
                            step.slots[i], " on ", value.device());
      pointers_.push_back(addresses.of(value, access(step, i)));
    }
    step.command(pointers_);
  }

  // A command reads its arguments and writes all of its results; a copy's target is both.
  Access access(const OperatorStep& step, size_t index) const {
    const auto results =
        c10::ArrayRef<uint32_t>(step.slots).slice(step.slots.size() - step.results);
    const uint32_t slot = step.slots[index];
    const bool written = std::find(results.begin(), results.end(), slot) != results.end();
    return written ? overwriting(values_[slot]) : Access::kRead;
  }

  void perform(const KernelStep& step) {
    pointers_.clear();
    std::optional<DeviceAddresses> addresses;
    if (launcher_.device().is_privateuseone()) [[unlikely]]
      use_on_device(step, addresses.emplace());
    for (const BufferLocation& place : step.pointers) pointers_.push_back(address_of(place));
    launcher_.launch(step, pointers_);
    tickets_.clear();
  }

  void* address_of(const BufferLocation& place) {
    using Word = codegen::BufferBinding::Word;
    if (place.arena) return static_cast<char*>(arena_.get()) + place.bytes;
    if (place.word == Word::kNone) [[likely]]
      return values_[place.slot].unsafeGetTensorImpl()->mutable_data();
    if (place.word == Word::kFailures) {
      failure_word_ = launcher_.failure_word();
      return &failure_word_;
    }
    if (running_) running_->enter(place.origin);
    return &tickets_.emplace_front(current_submission() + 1);
  }

  void use_on_device(const KernelStep& step, DeviceAddresses& addresses) {
    for (size_t i = 0; i < step.pointers.size(); ++i)
      if (step.pointers[i].has_slot())
        addresses.of(values_[step.pointers[i].slot],
                     step.lowered.buffers[i].written ? Access::kWrite : Access::kRead);
  }

  const Plan& plan_;
  const Launcher& launcher_;
  const bool blocking_ = config().blocking;
  const bool shown_ = shows_steps();
  RunningWindow* const running_ = RunningWindow::of_thread();
  Values values_;
  StepRunner runner_;
  c10::DataPtr arena_;
  c10::SmallVector<void*, 16> pointers_;
  // What launches take by value.
  void* failure_word_ = nullptr;
  std::forward_list<Submission> tickets_;
};

}  // namespace

at::Tensor Launcher::empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                           c10::ScalarType dtype) const {
  return at::empty_strided(sizes, strides, at::TensorOptions(dtype).device(device_));
}

c10::DataPtr Launcher::allocate(size_t bytes) const {
  return c10::GetAllocator(device_.type())->allocate(bytes);
}

bool Launcher::all_within(const at::Tensor& indices, int64_t limit) const {
  return !indices.lt(0).logical_or_(indices.ge(limit)).any().item<bool>();
}

void Launcher::launch(const KernelStep& kernel, c10::ArrayRef<void*>) const {
  TORCH_CHECK(false, "there is nothing that launches ", kernel.name, " on ", device_.str());
}

RunResult PlanExecutable::run(c10::ArrayRef<at::Tensor> inputs) {
  Run run(plan_, *launcher_, inputs);
  if (config().debug < kDebugGraphs) [[likely]]
    return run.run(nullptr);
  StepTimes times;
  const StepObserver observer = [&](const PlanStep&, const StepCost& cost, auto time) {
    times.add(cost, time);
  };
  const Clock::time_point begin = Clock::now();
  RunResult result = run.run(&observer);
  debug_print(times.report(Clock::now() - begin));
  return result;
}

RunResult PlanExecutable::run_timed(c10::ArrayRef<at::Tensor> inputs,
                                    std::vector<StepTime>& times) {
  times.reserve(times.size() + plan_.steps.size());
  const StepObserver observer = [&](const PlanStep& step, const StepCost&, auto time) {
    using Operations = c10::ArrayRef<int64_t>;
    times.push_back(
        {step.operations.empty() ? Operations(step.origin) : Operations(step.operations), time});
  };
  return Run(plan_, *launcher_, inputs).run(&observer);
}

}  // namespace torch_lazy
