#include "trace/recorder.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/graph_task.h>

#include <optional>
#include <utility>

#include "base/debug.h"
#include "base/without_gil.h"
#include "ops/operator_info.h"
#include "runtime/compile_queue.h"
#include "tape/python_frames.h"
#include "trace/debug.h"
#include "trace/profiled_window.h"

namespace torch_lazy {
namespace {

// Under deterministic algorithms it may not depend on the machine's load whether a window is hot:
// what was queued so far is compiled first. The lock is released meanwhile.
void wait_for_compiles_of(const TraceKey& key, RecordingGuard& lock) {
  if (!key.state.deterministic_algorithms()) return;
  lock.unlock();
  {
    const WithoutGil without_gil;  // a compile may warn
    wait_for_compiles(std::nullopt);
  }
  lock.lock();
}

// On a device that runs behind the host. What watches or checks a run wants it whole.
bool may_run_early() {
  const Config& settings = config();
  return execution_device().guard != nullptr && settings.early_operations > 0 &&
         !settings.blocking && !settings.verify && settings.debug < kDebugGraphs && !is_profiled();
}

// What watches or checks windows wants them recorded, and under deterministic algorithms nothing
// may depend on times. Of other devices than the CPU nothing was tried: what a window of few
// operations costs there is the launch of its kernels.
bool may_bypass(bool profiled) {
  const Config& settings = config();
  return settings.bypass && settings.defer != Defer::kNever && execution_device().is_cpu() &&
         !at::globalContext().deterministicAlgorithms() && !settings.verify &&
         settings.debug == 0 && !profiled;
}

std::chrono::nanoseconds now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace

Recorder::Recorder() : window_(*this), bypass_(now) {}

void Recorder::raise_error(RecordingGuard& lock) {
  std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

void Recorder::resolve_unusual(const ValueBinding& binding, StorageState& storage, bool writes) {
  if (storage.error) std::rethrow_exception(*storage.error);
  Others others;
  const Recorder* const owner = storage.recorder.load(std::memory_order_acquire);
  if (writes || (owner && owner != this)) {
    const RecordingGuard lock(recording_lock());
    add_conflicting(storage, writes, others);
  }
  for (Recorder* const other : others) other->flush_for_another({FlushReason::kOtherThread});
  if (storage.error) std::rethrow_exception(*storage.error);
  // A tensor that took over a pending storage without an operation (set_): the tape has no name for
  // it.
  if (!storage.resident() && binding.window != window_.serial())
    sync({FlushReason::kStorageTakenOver});
}

bool Recorder::bypasses_with(const OperatorInfo& op, size_t elements) {
  if (!may_bypass(is_profiled())) {
    bypass_.reset();
    return false;
  }
  if (error_ || !bypass_.add(op.id, elements)) return false;
  backward_ = is_in_backward();
  period_.reset();
  count(counters_.bypassed);
  return true;
}

bool Recorder::is_in_backward() {
  return torch::autograd::get_current_graph_task_id() != -1;
}

// Going into backward is no border: what autograd keeps is dead once it was used, so a window with
// both needs no memory for most of it, and the graphs of backward are as many as forward's.
void Recorder::end_backward() {
  backward_ = false;
  RecordingGuard lock(recording_lock());
  window_.wait_until_idle(lock);
  close(lock, {FlushReason::kBackwardEnds});
  if (deferring_ && may_bypass(is_profiled())) bypass_.note_sync();
}

Recorder::Binding Recorder::take_over(StorageState& storage, Others& others) {
  Recorder* const other = storage.recorder.load(std::memory_order_relaxed);
  if (!other || other == this) return Binding::kOwn;
  if (other->window_.mode() == Window::Mode::kDeferring) {
    const size_t before = others.size();
    add_conflicting(storage, /*writes=*/false, others);
    return others.size() == before ? Binding::kShared : Binding::kForeign;
  }
  if (window_.mode() == Window::Mode::kDeferring) other->window_.hand_over(storage);
  return Binding::kOwn;
}

// ---------------------------------------------------------------- one operation

RecordingGuard Recorder::prepare_another_window(bool same_state, c10::DeviceIndex device) {
  execution_device();  // chosen without the lock: it may load a backend and start a driver
  TORCH_CHECK(
      !capturing_,
      "torch.cuda.graph cannot capture operations on lazy tensors, which are given to the "
      "device later. Leave it out: windows that repeat become CUDA graphs by themselves. Or "
      "move what is to be captured to another device than 'lazy' first");
  RecordingGuard lock(recording_lock());
  window_.wait_until_idle(lock);
  if (!same_state)
    close(lock, {FlushReason::kGlobalState});
  else if (!window_.takes(device))
    close(lock, {FlushReason::kOtherStream});
  if (error_) raise_error(lock);
  if (window_.mode() != Window::Mode::kClosed) return lock;
  const auto [state, version] = GlobalState::current();
  const TraceKey key{state, backward_, device};
  state_version_ = version;
  wait_for_compiles_of(key, lock);
  learner_of_window_ = key.state.deterministic_algorithms() ? &deterministic_learner_ : &learner_;
  KnownTraces* const known = deferring_ ? learner_of_window_->start_window(key) : nullptr;
  matcher_.start(known);
  next_look_ = known && may_run_early() ? size_t(config().early_operations) : SIZE_MAX;
  window_.open(key, known ? Window::Mode::kDeferring : Window::Mode::kEager);
  return lock;
}

void Recorder::look_at_device(RecordingGuard& lock) {
  const auto expected = may_run_early() ? matcher_.expected(window_.tape(), history_) : nullptr;
  const auto version = expected ? expected->version() : nullptr;
  if (version) keep_error(window_.run_early(lock, version, matcher_.trusts_guess()));
  next_look_ =
      version && window_.runs_early() ? next_look_ + size_t(config().early_operations) : SIZE_MAX;
}

void Recorder::fail_guard(RecordingGuard& lock, bool because_of_another_thread) {
  const size_t deferred = window_.tape().size() - 1;  // all but the one that did not match
  if (deferred > 0) keep_error(window_.run_by_operation(lock, deferred, is_profiled()));
  window_.stop_deferring(deferred);  // until they have run, other threads wait for them
  window_.drop_inputs(0);
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();  // no other thread has business with an eager window
  if (deferred > 0 && !because_of_another_thread) {
    matcher_.note_guard_failure();
    debug_guard_failure(matcher_, window_.tape());
    if (is_profiled()) [[unlikely]]
      mark(guard_failure_event(matcher_, window_.tape()));
  }
  if (error) std::rethrow_exception(error);  // the caller abandons the operation
}

// ---------------------------------------------------------------- flushes

void Recorder::sync(Flush flush, bool always) {
  syncs_.count(flush.name());
  flush.at_sync = true;
  flush.profiled = is_profiled();
  std::optional<Range> range;
  if (flush.profiled) [[unlikely]] {
    flush.location = current_location();
    range.emplace(sync_event(flush));
  }
  RecordingGuard lock(recording_lock());
  window_.wait_until_idle(lock);
  close(lock, flush);
  if (always && deferring_ && may_bypass(flush.profiled)) bypass_.note_sync();
  if (error_) raise_error(lock);
}

void Recorder::flush(Flush flush) {
  RecordingGuard lock(recording_lock());
  window_.wait_until_idle(lock);
  close(lock, flush);
}

bool Recorder::set_deferring(bool deferring) {
  Recorder& recorder = current();
  recorder.flush({FlushReason::kGlobalState});
  return std::exchange(recorder.deferring_, deferring);
}

void Recorder::set_capturing(bool capturing) {
  Recorder& recorder = current();
  recorder.flush({FlushReason::kGlobalState});
  recorder.capturing_ = capturing && !execution_device().is_cpu();
}

void Recorder::flush_for_another(Flush flush, std::optional<c10::ArrayRef<c10::Stream>> streams) {
  RecordingGuard lock(recording_lock());
  if (streams && !window_.runs_on(*streams)) return;
  window_.wait_until_idle(lock);
  // An eager window has nothing pending, and its owner may be in the middle of an operation.
  if (window_.mode() == Window::Mode::kDeferring) close(lock, flush);
}

void Recorder::close(RecordingGuard& lock, Flush flush) {
  if (window_.mode() == Window::Mode::kClosed) {
    learner_of_window_->note_flush(flush.reason);
    return;
  }
  flushes_.count(flush.name());
  std::optional<Range> range;
  if (!flush.at_sync) {
    flush.profiled = is_profiled();
    if (flush.profiled) [[unlikely]]
      range.emplace(flush_event(flush, window_.tape()));
  }
  if (!window_.tape().empty()) {
    const auto [state, trace, version] = finish_window(lock, flush);
    if (may_run_early())
      history_.note_end(trace ? matcher_.traces() : nullptr, trace, window_.was_guessed_wrong());
    windows_.count(name(state));
    if (deferring_ && of_thread_ == this) bypass_.note_window(state, window_.tape().size());
    debug_window(flush, state, window_.tape());
    if (is_logging()) [[unlikely]]
      log_window(window_, flush, state, version.get());
  }
  learner_of_window_->note_flush(flush.reason);
  // Windows that are deferred are not fed to the detector: what it knows ends with them.
  if (window_.was_guessed_wrong()) matcher_.note_wrong_guess();
  const bool eager = window_.mode() == Window::Mode::kEager;
  if (eager && flush.reason == FlushReason::kPeriod)
    period_.restart_window();
  else if (!eager || !is_seam(flush.reason))  // behind which the stream goes on
    period_.reset();
  window_.close(lock);
}

// Runs a window that is deferring, and records its profile unless its trace was known.
Recorder::Finished Recorder::finish_window(RecordingGuard& lock, Flush flush) {
  if (window_.mode() == Window::Mode::kEager) {
    const WindowState state = record_profile(flush.automatic());
    matcher_.note_eager_end(window_.tape());
    return {window_.guard_failed() ? WindowState::kGuardFailed : state};
  }
  CompiledTrace* const trace = matcher_.ended(window_.tape());
  if (const auto version = trace ? trace->version_for(window_.live()) : nullptr) {
    if (!trace->makes_only_views()) keep_error(window_.run(lock, *version, flush.profiled));
    trace->note_run();
    matcher_.note_run(*trace);
    learner_of_window_->note_repeated(window_.tape(), *trace);
    return {WindowState::kHot, trace->shared_from_this(), version};
  }
  record_profile(flush.automatic());
  keep_error(window_.run_by_operation(lock, window_.tape().size(), flush.profiled));
  return {WindowState::kGuardFailed};
}

}  // namespace torch_lazy
