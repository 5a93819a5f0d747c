#include "backend/cpu/product_choice.h"

#include <c10/util/hash.h>

namespace torch_lazy {
namespace {

// Whether oneDNN does this call of a trial. They take turns, so that who interrupts one interrupts
// the other, and change order half way: a step that repeats multiplies at the same few places, and
// each is to see both.
bool is_onednns_turn(int call) {
  return (call + call / ProductChoice::kTimedCalls) % 2 == 0;
}

}  // namespace

size_t ProductChoice::Hash::operator()(const ProductShape& shape) const {
  return c10::get_hash(shape.batch, shape.rows, shape.inner, shape.columns, shape.transposed[0],
                       shape.transposed[1], shape.sum, shape.threads);
}

ProductChoice::Call ProductChoice::next(const ProductShape& shape) {
  auto found = trials_.find(shape);
  if (found == trials_.end()) {
    if (trials_.size() == kMostKnown) return {.is_settled = true};
    found = trials_.emplace(shape, Trial{}).first;
  }
  Trial& trial = found->second;
  if (trial.state == Trial::State::kWaiting) {
    if (tried_ == kMostTried) return {.is_settled = true};
    return {.timed_for = &trial};
  }
  if (trial.state == Trial::State::kTrying) {
    const int call = trial.calls++;
    if (call == 0) return {.onednn = true};  // in which it makes its code: no call like others
    if (call <= 2 * kTimedCalls) return {is_onednns_turn(call - 1), &trial};
    trial.state = Trial::State::kDecided;
    trial.onednn = trial.of_onednn > 0 && trial.of_onednn < trial.of_aten;
  }
  return {.onednn = trial.onednn, .is_settled = true};
}

void ProductChoice::took(const Call& call, int64_t nanoseconds) {
  Trial& trial = *call.timed_for;
  int64_t& least = call.onednn ? trial.of_onednn : trial.of_aten;
  if (least == 0 || nanoseconds < least) least = nanoseconds;
  if (trial.state != Trial::State::kWaiting) return;
  trial.waited += nanoseconds;
  if (trial.waited > (tried_ + 1) * kNanosecondsOfCode) end_wait(trial);
}

void ProductChoice::end_wait(Trial& trial) {
  if (tried_ == kMostTried || trial.of_aten < kNanosecondsOfCall) {
    trial.state = Trial::State::kDecided;
    return;
  }
  ++tried_;
  trial.state = Trial::State::kTrying;
  trial.of_aten = 0;  // of as many calls as oneDNN's
}

}  // namespace torch_lazy
