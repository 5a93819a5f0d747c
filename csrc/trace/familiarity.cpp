#include "trace/familiarity.h"

#include <algorithm>

namespace torch_lazy {

void Familiarity::begin(uint64_t call_path, bool backward) {
  begun_by_new_code_ = is_new(call_path);
  familiar_ = !begun_by_new_code_ || makes_code_anew();
  // Backward has the lines of forward.
  if (backward)
    familiar_ = familiar_ && forward_familiar_;
  else
    forward_familiar_ = familiar_;
  if (familiar_) credit_ = std::min(credit_ + 1, kMostCredit);
}

// What new code does, it hardly does again. Still, each window learnt from at once is hot one
// iteration earlier, so only a script that makes new code for ever pays for it with a sample: all
// its windows are unfamiliar, while other scripts earn credit with each one that is not.
bool Familiarity::teaches() {
  constexpr size_t kOneOf = 8;
  if (familiar_) return true;
  if (credit_ == 0) return ++without_credit_ % kOneOf == 0;
  --credit_;
  return true;
}

void Familiarity::learn(size_t operations, bool repeated) {
  if (!begun_by_new_code_) return;
  new_operations_ += operations;
  if (repeated) repeated_operations_ += operations;
}

bool Familiarity::is_new(uint64_t call_path) {
  // Guards against a script that makes new code for ever.
  constexpr size_t kMostPaths = 1 << 16;
  if (begun_at_.size() >= kMostPaths) begun_at_.clear();
  return begun_at_.insert(call_path).second;
}

// A few repetitions from new code are chance. Where a quarter of its operations repeat, the script
// makes its code anew.
bool Familiarity::makes_code_anew() {
  constexpr size_t kRemembered = 1 << 10, kChance = 64;
  if (new_operations_ > kRemembered) {
    new_operations_ /= 2;
    repeated_operations_ /= 2;
  }
  return repeated_operations_ > new_operations_ / 4 + kChance;
}

}  // namespace torch_lazy
