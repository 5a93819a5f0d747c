#include "plan/plan_run.h"

#include <ATen/ops/copy.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/full.h>
#include <c10/core/impl/COW.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <utility>

#include "base/config.h"
#include "base/debug.h"
#include "ir/print.h"
#include "offload/copy_on_device.h"
#include "plan/step_range.h"

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

// Where the tensor begins, even where it has no elements: a kernel addresses other parts of its
// memory by it.
const void* begin_of(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (const void* const first = impl.data()) [[likely]]
    return first;
  const auto* const memory = static_cast<const char*>(impl.unsafe_storage().data());
  return memory ? memory + impl.storage_offset() * int64_t(impl.itemsize()) : nullptr;
}

void copy_between(const at::Tensor& target, const at::Tensor& source) {
  if (!copy_on_device(target, source)) target.copy_(source);
}

}  // namespace

PlanRun::PlanRun(const Plan& plan, const RunSchedule& schedule, Launcher& launcher)
    : plan_(plan),
      schedule_(schedule),
      launcher_(launcher),
      values_(plan.slots),
      runner_(values_, launcher.device()) {}

void PlanRun::give(c10::ArrayRef<at::Tensor> inputs) {
  TORCH_CHECK(inputs.size() == plan_.inputs.size(), "the window takes ", plan_.inputs.size(),
              " inputs, it was given ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor& value = values_[plan_.inputs[i]];
    if (!value.defined() && inputs[i].defined()) value = without_bits(inputs[i]);
  }
}

void PlanRun::give_up() {
  for (const Submission submission : checked_) retract(submission);
}

RunResult PlanRun::finish(const StepObserver* observer) {
  const int64_t trials = launcher_.trials();
  proceed(plan_.steps.size(), observer);
  RunResult result;
  result.is_settled = launcher_.trials() == trials;
  if (error_) {
    const int64_t origin = plan_.steps.empty() ? 0 : plan_.steps[at_].origin;
    result.failure = RunFailure{size_t(origin), error_};
    result.unchanged = at_ < plan_.first_write;
  }
  const bool valid = !result.failure || plan_.as_recorded;
  for (const uint32_t slot : plan_.outputs)
    result.outputs.push_back(valid ? values_[slot] : at::Tensor());
  return result;
}

void PlanRun::proceed(size_t end, const StepObserver* observer) {
  if (error_) return;
  running_ = RunningWindow::of_thread();
  shown_ = shows_steps();
  blocking_ = config().blocking;
  watched_ = observer != nullptr || blocking_ || shown_;
  try {
    launcher_.enter_thread();
    if (at_ == 0 && plan_.arena_bytes > 0 && !arena_)
      arena_ = launcher_.allocate(size_t(plan_.arena_bytes));
    for (; at_ < end; ++at_) {
      const PlanStep& step = plan_.steps[at_];
      if (running_) [[unlikely]]
        running_->enter(step.origin);
      if (watched_) [[unlikely]]
        perform_watched(step, observer);
      else
        perform(step);
      release(step);
      if (!pending_.empty() && schedule_.launches_after[at_]) launch_pending();
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

// What precedes the step that failed has happened, so it has to be on its way, or is what failed.
void PlanRun::fail(std::exception_ptr error) noexcept {
  error_ = std::move(error);
  if (pending_.empty()) return;
  try {
    const size_t failed = at_;
    launch_pending();
    at_ = failed;
  } catch (...) {
    error_ = std::current_exception();
  }
}

void PlanRun::release(const PlanStep& step) {
  if (pending_.empty()) [[likely]] {
    for (const uint32_t slot : step.released) values_[slot].reset();
    return;
  }
  for (const uint32_t slot : step.released) kept_.push_back(std::move(values_[slot]));
}

void PlanRun::launch_pending() {
  const std::vector<KernelLaunch> kernels = std::exchange(pending_, {});
  const std::vector<size_t> steps = std::exchange(pending_steps_, {});
  size_t started = 0;
  try {
    launcher_.launch_together(kernels, started);
  } catch (...) {
    at_ = steps.at(std::min(started, steps.size() - 1));
    throw;
  }
  kept_.clear();
  tickets_.clear();
}

void PlanRun::perform_watched(const PlanStep& step, const StepObserver* observer) {
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

void PlanRun::wait_for_device() const {
  const c10::Device device = launcher_.device();
  if (device.is_cpu()) return;
  c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
  raise_found_failures();
}

void PlanRun::perform(const AllocateStep& step) {
  values_[step.slot] = empty(step.sizes, step.strides, step.dtype);
}

// What kernels that are not launched yet keep may be the memory that is missing.
at::Tensor PlanRun::empty(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  try {
    return launcher_.empty(sizes, strides, dtype);
  } catch (const c10::OutOfMemoryError&) {
    if (kept_.empty()) throw;
  }
  launch_pending();
  return launcher_.empty(sizes, strides, dtype);
}

void PlanRun::perform(const ConstantStep& step) {
  if (step.value.device() == launcher_.device() && !launcher_.device().is_cpu()) {
    values_[step.slot] = empty({}, {}, step.value.scalar_type());
    return copy_between(values_[step.slot], step.value);
  }
  // Elsewhere filled by a number in the call, which needs no copy from the host.
  values_[step.slot] =
      launcher_.device().is_cpu()
          ? step.value.clone()
          : at::full({}, step.value.item(), step.value.options().device(launcher_.device()));
}

void PlanRun::perform(const ViewStep& step) {
  const at::Tensor& base = values_[step.base];
  values_[step.slot] = view_of(base, step.layout.sizes, step.layout.strides,
                               base.storage_offset() + step.layout.offset);
}

void PlanRun::perform(const CopyStep& step) {
  const at::Tensor &source = values_[step.source], &target = values_[step.target];
  // A number that the program changes.
  if (source.is_cpu() && !target.is_cpu() && source.dim() == 0)
    target.fill_(source.item());
  else
    copy_between(target, source);
}

void PlanRun::perform(const CheckStep& step) {
  if (launcher_.all_within(values_[step.indices], step.limit)) return;
  TORCH_CHECK_INDEX(false, "index out of range in ", step.name);
}

void PlanRun::perform(const LibraryStep& step) {
  runner_.run(step.step);
  for (const ExpectedValue& expected : step.expected)
    TORCH_CHECK(is_as_expected(expected, values_[expected.slot]), step.step.op->name, " made ",
                describe(values_[expected.slot]), " for ", expected.recorded);
  for (const LibraryStep::Output& output : step.outputs) lay_out(output);
}

void PlanRun::lay_out(const LibraryStep::Output& output) {
  at::Tensor& made = values_[output.slot];
  if (!made.defined()) return;
  if (made.strides() == c10::IntArrayRef(output.strides) && made.storage_offset() == 0) return;
  at::Tensor laid_out = launcher_.empty(output.sizes, output.strides, made.scalar_type());
  laid_out.copy_(made);
  made = std::move(laid_out);
}

void PlanRun::perform(const OperatorStep& step) {
  pointers_.clear();
  for (size_t i = 0; i < step.slots.size(); ++i)
    if (writes(access(step, i))) own(step.slots[i]);
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
Access PlanRun::access(const OperatorStep& step, size_t index) const {
  const auto results = c10::ArrayRef<uint32_t>(step.slots).slice(step.slots.size() - step.results);
  const uint32_t slot = step.slots[index];
  const bool written = std::find(results.begin(), results.end(), slot) != results.end();
  return written ? overwriting(values_[slot]) : Access::kRead;
}

void PlanRun::perform(const KernelStep& step) {
  pointers_.clear();
  for (const BufferLocation& place : step.pointers)
    if (place.written && place.has_slot()) own(place.slot);
  std::optional<DeviceAddresses> addresses;
  if (launcher_.device().is_privateuseone()) [[unlikely]]
    use_on_device(step, addresses.emplace());
  for (const BufferLocation& place : step.pointers) pointers_.push_back(address_of(place));
  if (launcher_.traits().most_together > 1 && !watched_) {
    pending_.push_back({&step, KernelLaunch::Pointers(pointers_.begin(), pointers_.end())});
    pending_steps_.push_back(at_);
    return;
  }
  launcher_.launch(step, pointers_);
  tickets_.clear();
}

// What is to be written gets memory of its own where it shares some with a copy-on-write clone.
// This moves it: before any address is taken, and behind the kernels that were given the old one.
void PlanRun::own(uint32_t slot) {
  c10::StorageImpl& storage = *values_[slot].storage().unsafeGetStorageImpl();
  if (!pending_.empty() && c10::impl::cow::is_cow_data_ptr(storage.data_ptr())) launch_pending();
  storage.mutable_data();
}

// What is only read stays shared, so that threads may read one tensor at a time.
void* PlanRun::address_of(const BufferLocation& place) {
  using Word = codegen::BufferBinding::Word;
  if (place.arena) return static_cast<char*>(arena_.get()) + place.bytes;
  if (place.word == Word::kNone) [[likely]]
    return const_cast<void*>(begin_of(values_[place.slot]));
  if (place.word == Word::kFailures) {
    failure_word_ = launcher_.failure_word();
    return &failure_word_;
  }
  if (running_) running_->enter(place.origin);
  checked_.push_back(current_submission());
  return &tickets_.emplace_front(checked_.back() + 1);
}

void PlanRun::use_on_device(const KernelStep& step, DeviceAddresses& addresses) {
  for (const BufferLocation& place : step.pointers)
    if (place.has_slot())
      addresses.of(values_[place.slot], place.written ? Access::kWrite : Access::kRead);
}

}  // namespace torch_lazy
