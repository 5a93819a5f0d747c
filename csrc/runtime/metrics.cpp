#include "runtime/metrics.h"

namespace torch_lazy {
namespace {

Metrics::Operations sum(const std::deque<Metrics::OfThread>& threads) {
  Metrics::Operations total;
  for (const Metrics::OfThread& thread : threads) {
    total.recorded += thread.recorded.load(std::memory_order_relaxed);
    total.deferred += thread.deferred.load(std::memory_order_relaxed);
    total.run_at_once += thread.run_at_once.load(std::memory_order_relaxed);
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
          all.run_at_once - before_reset_.run_at_once};
}

void Metrics::reset() {
  for (Counter* counter : {&compiles, &run_ns, &windows_run, &promoted})
    counter->store(0, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  before_reset_ = sum(threads_);
  for (Named* named : {&windows_, &cuts_, &syncs_, &fallbacks_}) named->clear();
}

int64_t Metrics::count(Named& named, std::string_view key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto counter = named.find(key);
  if (counter == named.end()) counter = named.emplace(key, 0).first;
  return ++counter->second;
}

Metrics& metrics() {
  static Metrics* const instance = new Metrics;
  return *instance;
}

}  // namespace torch_lazy
