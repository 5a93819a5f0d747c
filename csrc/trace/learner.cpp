#include "trace/learner.h"

#include <algorithm>
#include <utility>

#include "base/metrics.h"
#include "runtime/remembered_traces.h"

namespace torch_lazy {

KnownTraces* Learner::start_window(const TraceKey& key) {
  forget_dropped_traces();
  admit_ready_traces();
  if (config().defer == Defer::kNever) return nullptr;
  const auto known = known_.find(key);
  return known != known_.end() ? &known->second : nullptr;
}

void Learner::forget_dropped_traces() {
  const TraceGeneration generation = trace_generation(owner_);
  if (generation == generation_) return;
  if (generation.emptied != generation_.emptied) {
    forget();
  } else {
    for (auto& [key, known] : known_) known.forget_dropped_traces();
    std::erase_if(awaited_, [&](const Awaited& awaited) {
      return awaited.trace->is_dropped() && awaited_traces_.erase(awaited.trace.get()) > 0;
    });
    stretches_.clear();  // where traces stand by their addresses
  }
  generation_ = generation;
}

void Learner::begin_thread() {
  if (!owner_) return;
  drop_traces(owner_);
  forget();
}

void Learner::forget() {
  generation_ = {};
  finished_seen_ = 0;
  known_.clear();
  awaited_.clear();
  awaited_traces_.clear();
  profile_.clear();
  seams_.clear();
  stretches_.clear();
  changing_.clear();
}

void Learner::admit_ready_traces() {
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
    if (ready.trace->version()) known_[ready.key].insert(ready.trace, ready.automatic);
  }
}

void Learner::await(const TraceKey& key, std::shared_ptr<CompiledTrace> trace,
                    std::optional<FlushReason> automatic) {
  if (!awaited_traces_.insert(trace.get()).second) return;
  if (trace->finished())
    finished_seen_ = 0;  // by another thread: admitted when the next window starts
  awaited_.push_back({key, std::move(trace), automatic});
}

void Learner::note_repeated(const Tape& tape, const CompiledTrace& trace) {
  seams_.note_repeated();
  stretches_.note_repeated(tape, reinterpret_cast<uintptr_t>(&trace));
}

void Learner::note_flush(FlushReason reason) {
  seams_.note_flush(reason);
  stretches_.note_flush(is_seam(reason));
  if (!is_seam(reason) && !changing_.empty()) changing_.clear();
}

// Under deterministic algorithms nothing depends on earlier processes.
const ScalarHistory* Learner::add_remembered(const Tape& tape, const Tape::Hash& structure,
                                             c10::ArrayRef<uint32_t> words) {
  if (owner_ || config().defer == Defer::kNever) return nullptr;
  const auto remembered = remembered_trace(structure);
  // A warning may come once a process, and is no part of what repeats then.
  const auto warned = [](const Tape::Entry& entry) { return entry.warnings != kNoWarnings; };
  if (!remembered || std::ranges::any_of(tape.entries(), warned)) return nullptr;
  const ScalarHistory* const history =
      profile_.add_remembered(structure, words, remembered->dynamic_scalars);
  if (history) increment(metrics().remembered_traces);
  return history;
}

WindowState Learner::record_profile(Window& window, std::optional<FlushReason> automatic) {
  if (!window.slots_valid()) return WindowState::kCold;
  Tape& tape = window.tape();
  if (seams_.is_changing() && !changing_.insert(tape.hash().low).second) {
    seams_.note_repeated();
    return WindowState::kCold;
  }
  const std::vector<uint32_t> words = dynamic_scalar_words(tape);
  c10::SmallVector<uint64_t, 16> numbers;
  for (const uint32_t word : words) numbers.push_back(tape.all_words()[word]);
  const Tape::Hash structure = tape.hash_without(words);
  auto [history, dynamic] = profile_.add(structure, numbers);
  if (!history) history = add_remembered(tape, structure, words);
  if (!history) {
    if (config().defer == Defer::kNever) return WindowState::kCold;
    seams_.note_new(tape);
    stretches_.note_new(tape);
    return WindowState::kCold;
  }
  if (dynamic > 0) increment(metrics().dynamic_scalars, int64_t(dynamic));
  if (config().defer == Defer::kNever) return WindowState::kWarm;
  auto trace = compiled_trace(owner_,
                              {.tape = tape,
                               .structure = structure,
                               .dynamic_scalars = history->dynamic_scalars(words),
                               .live = window.live(),
                               .spent = window.age()},
                              {window.device(), window.key().state.deterministic_algorithms()});
  if (!trace) {
    increment(metrics().fallbacks["window not kept"]);
    seams_.note_repeated();
    stretches_.note_repeated(tape, tape.hash().low);
    return WindowState::kWarm;
  }
  note_repeated(tape, *trace);
  await(window.key(), std::move(trace), automatic);
  return WindowState::kWarm;
}

}  // namespace torch_lazy
