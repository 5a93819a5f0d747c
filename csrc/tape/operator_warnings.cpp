#include "tape/operator_warnings.h"

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fork.h"

namespace torch_lazy {
namespace {

// Some messages name sizes, so that a program could make new ones for ever. Later ones are given
// where an operation runs, and no more where it is deferred.
constexpr size_t kMostRemembered = 1024;

class Remembered {
 public:
  WarningsId number_of(const std::vector<c10::Warning>& warnings) {
    std::string key;
    for (const c10::Warning& warning : warnings)
      key += std::to_string(warning.type().index()) + warning.msg() + '\0';
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
    if (all_.size() == kMostRemembered) return kNoWarnings;
    all_.push_back(warnings);
    for (const c10::Warning& warning : warnings) messages_.insert(warning.msg());
    return numbers_[std::move(key)] = WarningsId(all_.size());
  }
  // Elements of a deque stay where they are.
  const std::vector<c10::Warning>& at(WarningsId number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_[number - 1];
  }
  bool knows(const std::string& message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return messages_.count(message) > 0;
  }

 private:
  ForkSafeMutex mutex_{LockOrder::kLeaf};
  std::deque<std::vector<c10::Warning>> all_;
  std::unordered_map<std::string, WarningsId> numbers_;
  std::unordered_set<std::string> messages_;
};

Remembered& remembered() {
  static auto* const instance = new Remembered;
  return *instance;
}
// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Remembered& operator_warnings_made_at_load = remembered();

}  // namespace

WarningsId remember_warnings(const std::vector<c10::Warning>& warnings) {
  return warnings.empty() ? kNoWarnings : remembered().number_of(warnings);
}

void give_warnings(WarningsId warnings) {
  if (warnings == kNoWarnings) return;
  for (const c10::Warning& warning : remembered().at(warnings)) c10::warn(warning);
}

void CollectWarnings::process(const c10::Warning& warning) {
  into_.push_back(warning);
  before_->process(warning);
}

void SilenceRememberedWarnings::process(const c10::Warning& warning) {
  if (!remembered().knows(warning.msg())) before_.process(warning);
}

}  // namespace torch_lazy
