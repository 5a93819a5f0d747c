#include "base/metrics.h"

namespace torch_lazy {
namespace {

Metrics::Operations sum(const std::deque<Metrics::OfThread>& threads) {
  Metrics::Operations total;
  for (const Metrics::OfThread& thread : threads) {
    total.recorded += thread.recorded.load(std::memory_order_relaxed);
    total.deferred += thread.deferred.load(std::memory_order_relaxed);
    total.eager += thread.eager.load(std::memory_order_relaxed);
    total.bypassed += thread.bypassed.load(std::memory_order_relaxed);
  }
  return total;
}

}  // namespace

Metrics::OfThread& Metrics::of_new_thread() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return threads_.emplace_back();
}

Metrics::Operations Metrics::operations() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Operations all = sum(threads_);
  return {all.recorded - before_reset_.recorded, all.deferred - before_reset_.deferred,
          all.eager - before_reset_.eager, all.bypassed - before_reset_.bypassed};
}

const std::vector<std::pair<const char*, Metrics::Counter Metrics::*>>& Metrics::counters() {
  static const auto& table = *new std::vector<std::pair<const char*, Counter Metrics::*>>{
      {"compiles", &Metrics::compiles},
      {"run_ns", &Metrics::run_ns},
      {"windows_run", &Metrics::windows_run},
      {"onednn_products", &Metrics::onednn_products},
      {"dynamic_scalars", &Metrics::dynamic_scalars},
      {"remembered_traces", &Metrics::remembered_traces},
  };
  return table;
}

const std::vector<std::pair<const char*, Metrics::ByName Metrics::*>>& Metrics::counters_by_name() {
  static const auto& table = *new std::vector<std::pair<const char*, ByName Metrics::*>>{
      {"windows", &Metrics::windows},
      {"flushes", &Metrics::flushes},
      {"syncs", &Metrics::syncs},
      {"fallbacks", &Metrics::fallbacks},
      {"early_runs", &Metrics::early_runs},
      {"choices", &Metrics::choices},
      {"bytes_moved", &Metrics::bytes_moved},
      {"disk_cache", &Metrics::disk_cache},
  };
  return table;
}

void Metrics::explain_choice(std::string text) {
  constexpr size_t kMost = 100;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (explained_.size() == kMost) explained_.pop_front();
  explained_.push_back(std::move(text));
}

std::vector<std::string> Metrics::explained_choices() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {explained_.begin(), explained_.end()};
}

void Metrics::reset() {
  for (const auto& [name, counter] : counters())
    (this->*counter).store(0, std::memory_order_relaxed);
  for (const auto& [name, counters] : counters_by_name()) (this->*counters).reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  before_reset_ = sum(threads_);
  explained_.clear();
}

Metrics::Counter& Metrics::ByName::operator[](std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto counter = counters_.find(name);
  return counter != counters_.end() ? counter->second
                                    : counters_.try_emplace(std::string(name), 0).first->second;
}

std::map<std::string, int64_t> Metrics::ByName::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, int64_t> counts;
  for (const auto& [name, counter] : counters_)
    if (const int64_t count = counter.load(std::memory_order_relaxed)) counts.emplace(name, count);
  return counts;
}

void Metrics::ByName::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [name, counter] : counters_) counter.store(0, std::memory_order_relaxed);
}

Metrics& metrics() {
  static Metrics* const instance = new Metrics;
  return *instance;
}

}  // namespace torch_lazy
