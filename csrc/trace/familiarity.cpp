#include "trace/familiarity.h"

#include <algorithm>

namespace torch_lazy {

bool RecentPaths::insert(uint64_t path) {
  auto& paths = sets_[path % kSets].latest_first;
  const auto found = std::find(paths.begin(), paths.end(), path);
  const bool is_new = found == paths.end();
  std::copy_backward(paths.begin(), is_new ? found - 1 : found, is_new ? found : found + 1);
  paths.front() = path;
  return is_new;
}

void Familiarity::begin(uint64_t call_path, bool backward) {
  begun_by_new_code_ = begun_at_.insert(call_path);
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
  constexpr size_t kOneOf = 16;
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
