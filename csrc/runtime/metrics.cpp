#include "runtime/metrics.h"

namespace torch_lazy {

void Metrics::reset() {
  for (Counter* counter :
       {&recorded, &matched, &deferred, &run_at_once, &compiles, &run_ns, &windows_run})
    counter->store(0, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Named* named : {&windows_, &cuts_, &syncs_, &fallbacks_}) named->clear();
}

Metrics& metrics() {
  static Metrics* const instance = new Metrics;
  return *instance;
}

}  // namespace torch_lazy
