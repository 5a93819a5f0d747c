#include "trace/window.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/config.h"
#include "base/metrics.h"
#include "plan/step.h"
#include "profile/range.h"
#include "profile/running_window.h"
#include "runtime/verify.h"
#include "trace/held_memory.h"
#include "trace/number_input.h"
#include "trace/profiled_window.h"
#include "trace/run_failure.h"
#include "trace/snapshot.h"

namespace torch_lazy {
namespace {

std::condition_variable_any& idle_condition() {
  static auto* const instance = new std::condition_variable_any;
  return *instance;
}

// Times a run, and shows it to profilers.
class RunTimer {
 public:
  // Of the first operations of the tape, by the version; one by one where it is null.
  RunTimer(bool profiled, const Tape& tape, size_t operations,
           const CompiledTrace::Version* version) {
    if (profiled) [[unlikely]]
      range_.emplace(run_event(tape, operations, version));
    if (profiled || !execution_device().is_cpu()) [[unlikely]]
      steps_.emplace(tape.entries(),
                     version ? version->graph.operations : c10::ArrayRef<uint32_t>(), profiled);
    start_ = std::chrono::steady_clock::now();
  }
  ~RunTimer() {
    const auto taken = std::chrono::steady_clock::now() - start_;
    increment(metrics().run_ns,
              std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
  }

 private:
  std::optional<Range> range_;
  std::optional<RunningWindow> steps_;
  std::chrono::steady_clock::time_point start_;
};

// The numbers of a run, each a tensor on memory that all share and that must outlive the run.
void append_numbers(const Tape& tape, c10::ArrayRef<uint32_t> words, std::vector<double>& memory,
                    std::vector<at::Tensor>& inputs) {
  memory.resize(words.size());
  inputs.reserve(inputs.size() + words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    std::memcpy(&memory[i], &tape.all_words()[words[i]], sizeof(double));
    inputs.push_back(number_input(memory[i]));
  }
}

}  // namespace

uint64_t Window::next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void Window::open(const TraceKey& key, Mode mode) {
  key_ = key;
  guessed_wrong_ = false;
  opened_ = std::chrono::steady_clock::now();
  watched_ = is_observed();
  if (execution_device().guard) stream_ = current_stream(key.device);
  if (mode == Mode::kDeferring) {
    most_held_bytes_ = torch_lazy::most_held_bytes(key.device);
    most_dead_bytes_ = most_dead_bytes(0, 0, /*deterministic=*/true);
  }
  mode_ = mode;
}

c10::Stream Window::current_stream(c10::DeviceIndex device) {
  const ExecutionDevice& execution = execution_device();
  return execution.guard->getStream(execution.device(device));
}

void Window::close(RecordingGuard& lock) {
  for (const BoundStorage& storage : storages_)
    if (storage.owner) storage.owner->recorder.store(nullptr, std::memory_order_release);
  shared_.clear();
  storages_.clear();
  input_offsets_.clear();
  tape_.clear();
  held_bytes_ = dead_bytes_ = 0;
  guard_failed_ = false;
  slots_valid_ = true;
  serial_ = next_serial();
  mode_ = Mode::kClosed;
  stream_.reset();
  if (inputs_.empty() && !early_) return;
  // Left where an operation was abandoned.
  std::vector<at::Tensor> dropped = std::exchange(inputs_, {});
  running_ = true;  // other threads stay out until the device is no longer at it
  lock.unlock();
  drop_early_run();
  dropped.clear();
  lock.lock();
  running_ = false;
  idle_condition().notify_all();
}

BoundStorage* Window::owned(const StorageState& storage) noexcept {
  // Another thread may have bound the storage since, and overwritten the slot.
  if (storage.slot < storages_.size() && storages_[storage.slot].owner == &storage)
    return &storages_[storage.slot];
  for (BoundStorage& bound : storages_)
    if (bound.owner == &storage) return &bound;
  return nullptr;
}

void Window::unbind(StorageState& storage) noexcept {
  BoundStorage* const bound = owned(storage);
  if (!bound) return;
  bound->owner = nullptr;
  storage.recorder.store(nullptr, std::memory_order_relaxed);
  // A pending storage that dies needs no memory; an input that dies is kept by the window.
  if (bound->made)
    held_bytes_ -= bound->bytes;
  else
    add_dead(bound->bytes);
}

void Window::hand_over(StorageState& storage) noexcept {
  BoundStorage* const bound = owned(storage);
  if (!bound) return;
  bound->owner = nullptr;
  bound->handed_over = true;
  storage.recorder.store(nullptr, std::memory_order_relaxed);
}

std::vector<bool> Window::live() const {
  std::vector<bool> live(storages_.size());
  for (size_t i = 0; i < storages_.size(); ++i)
    live[i] = storages_[i].made && (storages_[i].owner || storages_[i].handed_over);
  return live;
}

void Window::add_snapshot(const at::Tensor& cpu_tensor) {
  inputs_.push_back(make_snapshot(cpu_tensor));
  add_dead(int64_t(cpu_tensor.nbytes()));
}

bool Window::is_beyond_limits() {
  if (held_bytes_ > most_held_bytes_) return true;
  most_dead_bytes_ = most_dead_bytes(dead_bytes_, held_bytes_ - dead_bytes_,
                                     key_.state.deterministic_algorithms());
  return dead_bytes_ > most_dead_bytes_;
}

void Window::drop_inputs(size_t kept) {
  inputs_.resize(std::min(inputs_.size(), kept));
}

// ---------------------------------------------------------------- running

void Window::forget_waiters() {
  std::construct_at(&idle_condition());
}

std::exception_ptr Window::lose_run() {
  if (!running_) return nullptr;
  running_ = false;
  mode_ = Mode::kEager;  // there is nothing left to run
  const auto error = std::make_exception_ptr(
      std::runtime_error("the process was forked while another thread computed this tensor: "
                         "compute it in the child, or call torch.lazy.synchronize() before the "
                         "fork"));
  // An operation that is open on the tape has no words yet.
  return poison({0, error}, Ran::kInAnyOrder, tape_.size() - size_t(tape_.is_open()));
}

void Window::wait_until_idle(RecordingGuard& lock) {
  if (running_) idle_condition().wait(lock, [&] { return !running_; });
}

std::exception_ptr Window::run(RecordingGuard& lock, const CompiledTrace::Version& version,
                               bool profiled) {
  RunResult result;
  std::vector<double> numbers;
  std::vector<at::Tensor> inputs = std::move(inputs_);
  inputs_.clear();
  running_ = true;
  lock.unlock();
  const size_t own_inputs = inputs.size();
  if (early_ && !(early_->is_of(version) && !config().verify && early_->wait())) drop_early_run();
  {
    const RunTimer timer(profiled, tape_, tape_.size(), &version);
    const SilenceRememberedWarnings silence;
    try {
      const ScopedGlobalState state(key_.state);
      const c10::OptionalStreamGuard stream(stream_);
      append_numbers(tape_, version.graph.numbers, numbers, inputs);
      result = run_version(version, inputs);
    } catch (...) {  // run() should report, not raise; nothing is known of what was done
      result.outputs.assign(version.graph.output_storages.size(), {});
      result.failure = RunFailure{0, std::current_exception()};
    }
  }
  increment(metrics().windows_run);
  inputs.resize(own_inputs);
  if (result.failure && result.unchanged) {
    const size_t operation = version.graph.operations.at(result.failure->operation);
    const std::exception_ptr reported =
        device_error(result.failure->error, device(), tape_.entry(operation));
    lock.lock();
    inputs_ = std::move(inputs);
    // What a device told late is raised; what is not raised is told as a fallback.
    const std::exception_ptr untold = reported ? nullptr : result.failure->error;
    const std::exception_ptr error = run_by_operation(lock, tape_.size(), profiled, untold);
    return error ? error : reported;
  }
  inputs.clear();  // may free memory whose owner takes the GIL
  if (result.failure)
    result.failure->operation = version.graph.operations.at(result.failure->operation);
  lock.lock();
  return finish_run(result, Ran::kInAnyOrder, version.graph.output_storages, tape_.size());
}

RunResult Window::run_version(const CompiledTrace::Version& version,
                              c10::ArrayRef<at::Tensor> inputs) {
  if (const std::unique_ptr<EarlyRun> run = std::move(early_)) {
    if (run->has_begun()) increment(metrics().early_runs["finished"]);
    return run->finish(inputs);
  }
  return config().verify ? run_and_verify(version, tape_, inputs, device()) : version.run(inputs);
}

void Window::drop_early_run() {
  if (!early_) return;
  const bool known = early_->cancel();
  if (early_->has_begun()) {
    guessed_wrong_ |= !early_->is_spoiled();
    increment(metrics().early_runs["dropped"]);
  }
  if (!known) static_cast<void>(early_.release());
  early_.reset();
}

std::exception_ptr Window::run_early(RecordingGuard& lock,
                                     const std::shared_ptr<const CompiledTrace::Version>& version,
                                     bool trusted) {
  std::exception_ptr error;
  if (!early_thread_) early_thread_ = new EarlyThread;
  running_ = true;
  lock.unlock();
  try {
    if (early_ && !early_->is_of(*version)) drop_early_run();
    if (!early_) early_ = EarlyRun::begin(version, *early_thread_, key_.state, stream_);
    if (early_ && (trusted || early_->was_told() || is_device_idle(error)))
      early_->tell(tape_, inputs_);
  } catch (const std::exception&) {  // the window runs when it is complete, and may fail then
    drop_early_run();
  }
  lock.lock();
  running_ = false;
  idle_condition().notify_all();
  return error;
}

bool Window::is_device_idle(std::exception_ptr& told) const {
  try {
    return execution_device().guard->queryStream(*stream_);
  } catch (...) {
    told = device_error(std::current_exception(), device(), tape_.entry(0));
    return false;
  }
}

std::exception_ptr Window::run_by_operation(RecordingGuard& lock, size_t operations, bool profiled,
                                            const std::exception_ptr& executable_failure) {
  std::vector<uint32_t> kept, kept_storages;
  for (size_t slot = 0; slot < storages_.size(); ++slot)
    if (storages_[slot].made && storages_[slot].owner) {
      kept.push_back(storages_[slot].root);
      kept_storages.push_back(uint32_t(slot));
    }
  std::vector<at::Tensor> inputs = std::move(inputs_);
  inputs_.clear();
  running_ = true;
  lock.unlock();
  drop_early_run();
  RunResult result;
  {
    const RunTimer timer(profiled, tape_, operations, nullptr);
    const SilenceRememberedWarnings silence;
    Values values(tape_.values);
    try {
      const ScopedGlobalState state(key_.state);
      const c10::OptionalStreamGuard stream(stream_);
      std::vector<Step> steps;
      std::vector<InputMetadata> described;
      for (size_t i = 0; i < operations; ++i)
        steps.push_back(step_from_tape(tape_, i, &described, device()));
      plan_releases(steps, kept);
      TORCH_INTERNAL_ASSERT(described.size() <= inputs.size(), "a window without its inputs");
      for (size_t i = 0; i < described.size(); ++i)
        values[described[i].value] = std::move(inputs[i]);
      result.failure = run_steps(steps, values, device());
    } catch (...) {
      result.failure = RunFailure{0, std::current_exception()};
    }
    for (const uint32_t value : kept) result.outputs.push_back(values[value]);
  }
  inputs.clear();
  if (executable_failure && !result.failure) note_failure_of_executable(executable_failure);
  lock.lock();
  return finish_run(result, Ran::kInOrder, kept_storages, operations);
}

std::exception_ptr Window::finish_run(const RunResult& result, Ran ran,
                                      c10::ArrayRef<uint32_t> output_storages, size_t operations) {
  running_ = false;
  for (size_t i = 0; i < output_storages.size(); ++i) {
    StorageState* owner = storages_[output_storages[i]].owner;
    if (owner && !owner->resident() && result.outputs[i].defined())
      owner->buffer = result.outputs[i].storage();
  }
  std::exception_ptr error;
  if (result.failure) error = poison(*result.failure, ran, operations);
  idle_condition().notify_all();
  return error;
}

// The failing operation and those after it did not happen: what they would have made, and what the
// failing one may have written in part, must not be read. Reading it raises the original error.
// What there was before, and they would have written, is as it is in eager after the failing line;
// in a run whose steps are in another order it may be written already.
std::exception_ptr Window::poison(const RunFailure& failure, Ran ran, size_t operations) {
  std::exception_ptr error = with_location(failure.error, tape_.entry(failure.operation));
  const auto shared = std::make_shared<const std::exception_ptr>(error);
  std::vector<uint32_t> storage_of(tape_.values);
  std::vector<InputMetadata> inputs;
  const size_t end = ran == Ran::kInOrder ? failure.operation + 1 : operations;
  for (size_t i = 0; i < end; ++i) {
    const std::vector<Operand> operands = decode_operands(tape_.words(i), &inputs);
    for (const InputMetadata& input : inputs)
      if (!input.cpu) storage_of[input.value] = input.storage;
    inputs.clear();
    for (const OutputMetadata& output : decode_outputs(tape_.outputs(i)))
      if (output.kind != OutputMetadata::Kind::kUndefined &&
          output.kind != OutputMetadata::Kind::kArgument)
        storage_of[output.value] = output.storage;
    if (i < failure.operation) continue;
    const auto poison_value = [&](const Operand& operand) {
      if (operand.kind != Operand::Kind::kValue) return;
      const uint32_t slot = storage_of[operand.value];
      StorageState* owner = slot < storages_.size() ? storages_[slot].owner : nullptr;
      if (owner) owner->error = shared;
    };
    const Effects& effects = *tape_.entry(i).op->effects;
    for (size_t a = 0; a < operands.size() && a < effects.arguments.size(); ++a) {
      if (!effects.arguments[a].writes) continue;
      poison_value(operands[a]);
      for (const Operand& element : operands[a].elements) poison_value(element);
    }
  }
  for (const BoundStorage& storage : storages_)
    if (storage.owner && storage.made && !storage.owner->resident()) storage.owner->error = shared;
  return error;
}

}  // namespace torch_lazy
