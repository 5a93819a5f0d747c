#include "trace/trace_profile.h"

#include <utility>

namespace torch_lazy {

TraceProfile::Again TraceProfile::add(const Tape::Hash& structure,
                                      c10::ArrayRef<uint64_t> numbers) {
  // Guards against a script that never repeats itself; what is hot stays known elsewhere.
  constexpr size_t kMostSeen = 1 << 16, kMostNumbers = 1 << 20;
  if (once_.size() + again_.size() >= kMostSeen || numbers_.size() >= kMostNumbers) clear();
  auto known = again_.find(structure);
  if (known == again_.end()) {
    const Once now{uint32_t(numbers_.size()), uint32_t(numbers_.size() + numbers.size())};
    const auto [seen, first] = once_.emplace(structure, now);
    if (first) {
      numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
      return {nullptr, 0};
    }
    const Once before = seen->second;
    known = again_.emplace(structure, ScalarHistory()).first;
    known->second.add({numbers_.data() + before.begin, before.end - before.begin});
    once_.erase(seen);
  }
  ScalarHistory& history = known->second;
  const size_t dynamic = history.dynamic();
  return {&history, history.add(numbers) ? history.dynamic() - dynamic : 0};
}

const ScalarHistory* TraceProfile::add_remembered(const Tape::Hash& structure,
                                                  c10::ArrayRef<uint32_t> words,
                                                  const DynamicScalars& dynamic) {
  const auto seen = once_.find(structure);
  if (seen == once_.end()) return nullptr;
  const auto [begin, end] = seen->second;
  auto history = ScalarHistory::remembered({numbers_.data() + begin, end - begin}, words, dynamic);
  if (!history) return nullptr;
  once_.erase(seen);
  return &again_.emplace(structure, std::move(*history)).first->second;
}

void TraceProfile::clear() {
  once_.clear();
  numbers_.clear();
  again_.clear();
}

}  // namespace torch_lazy
