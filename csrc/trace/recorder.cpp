#include "trace/recorder.h"

#include <ATen/ops/clone.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

#include "base/config.h"
#include "base/debug.h"
#include "base/metrics.h"
#include "tape/operation_location.h"
#include "trace/debug.h"

namespace torch_lazy {

RecordingLock& Recorder::mutex() {
  static constinit RecordingLock instance;
  return instance;
}

std::condition_variable_any& Recorder::idle_condition() {
  static auto* const instance = new std::condition_variable_any;
  return *instance;
}

uint64_t Recorder::next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void Recorder::wait_until_idle(Lock& lock, Recorder& recorder) {
  idle_condition().wait(lock, [&] { return !recorder.running_; });
}

void Recorder::raise_error(Lock& lock) {
  std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

// ---------------------------------------------------------------- one operation

void Recorder::settle_unusual(const ValueBinding& binding, StorageState& storage) {
  if (storage.error) std::rethrow_exception(*storage.error);
  Recorder* other = storage.recorder.load(std::memory_order_acquire);
  if (other && other != this && (other->mode_ == Mode::kDeferring || !storage.resident())) {
    other->cut_for_another("touched by another thread");
    if (storage.error) std::rethrow_exception(*storage.error);
  }
  // A tensor that took over a pending storage without an operation (set_): the tape has no name for
  // it.
  if (!storage.resident() && binding.window != serial_) sync("storage taken over");
}

void Recorder::begin(const OperatorInfo& op) {
  count(counters_.recorded);
  const bool backward = torch::autograd::get_current_graph_task_id() != -1;
  // Mostly found by match(), if anybody may ask for it; where that takes the GIL it must be before
  // the lock.
  const bool locates_now = (locating_takes_gil() && familiarity_.familiar()) || config().debug > 0;
  location_ = locates_now ? current_operation_location(backward) : kNoLocation;
  inputs_before_ = inputs_.size();
  const bool same_state = GlobalState::current_version() == state_version_;
  // Going into backward is no border: what autograd keeps is dead once it was used, so a window
  // with both needs no memory for most of it, and the graphs of backward are as many as forward's.
  const bool backward_ended = backward_ && !backward;
  if (mode_ == Mode::kEager && !backward_ended && same_state && !error_) {
    // Nothing is pending, so no other thread has business here: no lock.
    backward_ = backward;
    tape_.begin(&op, location_);
    return;
  }
  Lock lock(mutex());
  if (running_) wait_until_idle(lock, *this);
  if (mode_ != Mode::kIdle) {
    if (backward_ended)
      close(lock, "backward ends", false);
    else if (!same_state)
      close(lock, "state changed", false);
  }
  if (error_) raise_error(lock);
  if (mode_ == Mode::kIdle) start_window(backward);
  backward_ = backward;
  tape_.begin(&op, location_);
  inputs_before_ = inputs_.size();
  lock_ = std::move(lock);  // kept until match() or the end of the operation
}

bool Recorder::input(ValueBinding& binding, StorageState& storage, const c10::TensorImpl& impl,
                     int64_t storage_bytes, uint8_t flags) {
  const bool first = !touches(storage);
  if (first) {
    const Lock lock = lock_.owns_lock() ? Lock() : Lock(mutex());
    bind_storage(storage, storage_bytes, false, 0);
  }
  binding = {serial_, tape_.values++};
  tape_.word(make_word(Tag::kInput, binding.slot, 0, flags));
  tape_.tensor_metadata(impl, storage.slot, first, storage_bytes);
  return mode_ == Mode::kDeferring;
}

void Recorder::cpu_tensor(const at::Tensor& tensor) {
  // The snapshot is contiguous, so where the tensor lay in its own storage is nobody's business: a
  // slice of a shuffled index would otherwise be another trace at each step.
  tape_.word(make_word(Tag::kCpuTensor, tape_.values++));
  tape_.contiguous_metadata(tensor.sizes(), tensor.scalar_type());
  if (mode_ != Mode::kDeferring) return;
  inputs_.push_back(at::clone(tensor, at::MemoryFormat::Contiguous));
  held_bytes_ += int64_t(tensor.nbytes());
}

bool Recorder::match() {
  if (mode_ == Mode::kDeferring) {
    if (cursor_.advance(tape_) || cursor_.find_again(tape_, false)) {
      locate();
      count(counters_.deferred);
      return true;
    }
    diverge(lock_);
    if (error_) raise_error(lock_);  // the caller abandons the operation
  }
  if (lock_.owns_lock()) lock_.unlock();
  if (familiarity_.familiar()) locate();
  count(counters_.run_at_once);
  return false;
}

void Recorder::locate() {
  if (location_ != kNoLocation || locating_takes_gil()) return;
  location_ = current_operation_location(backward_);
  tape_.set_location(location_);
}

void Recorder::bind_storage(StorageState& storage, int64_t bytes, bool made, uint32_t root) {
  storage.window = serial_;
  storage.slot = tape_.storages++;
  StorageState* owner = nullptr;
  if ((made || mode_ == Mode::kDeferring) && !storage.recorder.load(std::memory_order_relaxed)) {
    storage.recorder.store(this, std::memory_order_release);
    owner = &storage;
  }
  storages_.push_back({owner, bytes, made, root});
  if (made) held_bytes_ += bytes;
}

void Recorder::bind_output(const OutputMetadata& output, ValueBinding& binding,
                           StorageState* storage) {
  using Kind = OutputMetadata::Kind;
  if (output.kind == Kind::kUndefined || output.kind == Kind::kArgument) return;
  binding = {serial_, tape_.values++};
  if (output.kind == Kind::kFresh) bind_storage(*storage, output.storage_bytes, true, binding.slot);
}

void Recorder::end_deferred() {
  tape_.copy_outputs(cursor_.output_words());
  tape_.end();
  const Segment::End* end = cursor_.end();
  if (end && end->automatic && cursor_.at_leaf())
    close(lock_, "period", true);
  else if (const char* limit = limit_reached())
    close(lock_, limit, true);
  lock_.unlock();
}

void Recorder::begin_outputs() {
  lock_ = Lock(mutex());
}

void Recorder::undefined_output() {
  tape_.output({});
}

void Recorder::argument_output(uint32_t source) {
  OutputMetadata output;
  output.kind = OutputMetadata::Kind::kArgument;
  output.source = source;
  tape_.output(output);
}

void Recorder::output(OutputMetadata::Kind kind, uint32_t source, const c10::TensorImpl& impl,
                      int64_t storage_bytes, uint8_t flags, ValueBinding& binding,
                      StorageState& storage) {
  binding = {serial_, tape_.values++};
  if (kind == OutputMetadata::Kind::kFresh)
    bind_storage(storage, storage_bytes, true, binding.slot);
  else if (!touches(storage))
    trusted_ = false;  // another thread has bound it since the arguments were recorded
  tape_.output(kind, source, impl, storage_bytes, flags, binding.slot, storage.slot);
}

void Recorder::end_run() {
  tape_.end();
  period_.push(tape_.entry(tape_.size() - 1).op->id);
  if (period_.at_boundary())
    close(lock_, "period", true);
  else if (const char* limit = limit_reached())
    close(lock_, limit, true);
  lock_.unlock();
}

void Recorder::abandon() noexcept {
  if (!lock_.owns_lock()) lock_ = Lock(mutex());
  tape_.abandon();
  inputs_.resize(std::min(inputs_.size(), inputs_before_));
  // The slots given to its arguments are described nowhere now: start afresh.
  close(lock_, "error", false);
  lock_.unlock();
}

// ---------------------------------------------------------------- cuts

void Recorder::start_window(bool backward) {
  key_ = {GlobalState::current(), backward};
  state_version_ = GlobalState::current_version();
  if (const uint64_t generation = trace_generation(); generation != generation_) {
    generation_ = generation;
    known_.clear();
    awaited_.clear();
    awaited_traces_.clear();
    profile_.clear();
  }
  admit_ready_traces();
  started_ = std::chrono::steady_clock::now();
  mode_ = Mode::kEager;
  familiarity_.begin(call_path(), backward);
  if (config().defer == Defer::kNever) return;
  const auto known = known_.find(key_);
  if (known == known_.end()) return;
  cursor_ = known->second.start();
  mode_ = Mode::kDeferring;
}

void Recorder::admit_ready_traces() {
  const uint64_t finished = finished_compiles();
  if (finished == finished_seen_ || awaited_.empty()) return;
  finished_seen_ = finished;
  for (size_t i = 0; i < awaited_.size();) {
    if (!awaited_[i].trace->finished()) {
      ++i;
      continue;
    }
    const Awaited ready = std::move(awaited_[i]);
    awaited_traces_.erase(ready.trace.get());
    awaited_[i] = std::move(awaited_.back());
    awaited_.pop_back();
    if (ready.trace->version()) known_[ready.key].insert(ready.trace, ready.automatic_end);
  }
}

void Recorder::sync(std::string_view cause) {
  syncs_.count(cause);
  cut(cause);
  const Lock lock(mutex());
  if (error_) {
    std::exception_ptr error = std::exchange(error_, nullptr);
    std::rethrow_exception(error);
  }
}

void Recorder::cut_for_another(std::string_view cause) {
  Lock lock(mutex());
  if (running_) wait_until_idle(lock, *this);
  // A window that runs at once has nothing pending, and its owner may be in the middle of an
  // operation.
  if (mode_ == Mode::kDeferring) close(lock, cause, false);
}

void Recorder::cut(std::string_view cause) {
  TORCH_INTERNAL_ASSERT(!lock_.owns_lock(), "a cut in the middle of an operation");
  Lock lock(mutex());
  if (running_) wait_until_idle(lock, *this);
  close(lock, cause, false);
}

void Recorder::close(Lock& lock, std::string_view cause, bool automatic) {
  if (mode_ == Mode::kIdle) return;
  cuts_.count(cause);
  const char* state = "cold";
  if (tape_.empty()) {
    release_bindings();
  } else if (mode_ == Mode::kDeferring) {
    if (!cursor_.end()) cursor_.find_again(tape_, true);
    const Segment::End* end = cursor_.end();
    auto version = end ? end->trace->version_for(live()) : nullptr;
    if (version) {
      run_window(lock, *version);
      state = "hot";
    } else {
      learn(automatic);
      run_by_operation(lock, tape_.size());
      state = "diverged";
    }
  } else {
    state = learn(automatic) ? "warm" : "cold";
    if (diverged_) state = "diverged";
  }
  if (!familiarity_.familiar() && mode_ == Mode::kEager) pass_operation_locations();
  if (!tape_.empty()) windows_.count(state);
  debug_window(cause, state, tape_);
  release_bindings();
  // Windows that are deferred are not fed to the detector: what it knows ends with them.
  if (automatic && cause == "period" && mode_ == Mode::kEager)
    period_.restart_window();
  else
    period_.reset();
  tape_.clear();
  held_bytes_ = 0;
  diverged_ = false;
  trusted_ = true;
  familiarity_.end();
  serial_ = next_serial();
  mode_ = Mode::kIdle;
  inputs_before_ = 0;
  if (inputs_.empty()) return;
  // Left where an operation was abandoned. Freed without the lock: memory from outside may need the
  // GIL.
  std::vector<at::Tensor> dropped = std::exchange(inputs_, {});
  lock.unlock();
  dropped.clear();
  lock.lock();
}

void Recorder::release_bindings() {
  for (BoundStorage& storage : storages_)
    if (storage.owner) storage.owner->recorder.store(nullptr, std::memory_order_release);
  storages_.clear();
}

std::vector<bool> Recorder::live() const {
  std::vector<bool> live(storages_.size());
  for (size_t i = 0; i < storages_.size(); ++i) live[i] = storages_[i].made && storages_[i].owner;
  return live;
}

bool Recorder::learn(bool automatic) {
  if (!trusted_ || !familiarity_.teaches()) return false;
  const std::vector<uint32_t> words = dynamic_scalar_words(tape_);
  c10::SmallVector<uint64_t, 16> numbers;
  for (const uint32_t word : words) numbers.push_back(tape_.all_words()[word]);
  const auto [history, dynamic] = profile_.add(tape_.hash_without(words), numbers);
  familiarity_.learn(tape_.size(), history != nullptr);
  if (!history) return false;
  if (dynamic > 0) increment(metrics().dynamic_scalars, int64_t(dynamic));
  if (config().defer == Defer::kNever) return true;
  if (!familiarity_.familiar()) {
    // The lines of its operations are not known. They are waited for, but not for ever.
    constexpr uint32_t kMostWithoutLines = 6;
    if (history->recordings() < kMostWithoutLines) return true;
  }
  auto trace = compiled_trace(tape_, history->dynamic_scalars(words), live(),
                              key_.state.deterministic_algorithms,
                              std::chrono::steady_clock::now() - started_);
  if (!awaited_traces_.insert(trace.get()).second) return true;
  if (trace->finished())
    finished_seen_ = 0;  // by another thread: admitted when the next window starts
  awaited_.push_back({key_, std::move(trace), automatic});
  return true;
}

const char* Recorder::limit_reached() const {
  if (int64_t(tape_.size()) >= config().window_operations.load(std::memory_order_relaxed))
    return "operations limit";
  if (mode_ == Mode::kDeferring &&
      held_bytes_ > config().window_bytes.load(std::memory_order_relaxed))
    return "bytes limit";
  return nullptr;
}

}  // namespace torch_lazy
