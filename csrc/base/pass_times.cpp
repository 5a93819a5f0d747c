#include "base/pass_times.h"

#include <atomic>
#include <ctime>
#include <mutex>

#include "base/fork.h"

namespace torch_lazy {
namespace {

struct Times {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards `by_pass`
  std::map<std::string, int64_t> by_pass;
  std::atomic<int64_t> total{0};  // never reset
};

Times& times() {
  static Times* const instance = new Times;
  return *instance;
}

int64_t thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

PassTimer::PassTimer(const char* pass) : pass_(pass), start_(thread_time()) {
  safe_point_for_fork();
}

PassTimer::~PassTimer() {
  add_pass_time(pass_, thread_time() - start_);
}

void add_pass_time(const char* pass, int64_t nanoseconds) {
  const std::lock_guard<std::mutex> lock(times().mutex);
  times().by_pass[pass] += nanoseconds;
  times().total.fetch_add(nanoseconds, std::memory_order_relaxed);
}

std::map<std::string, int64_t> pass_times() {
  const std::lock_guard<std::mutex> lock(times().mutex);
  return times().by_pass;
}

void reset_pass_times() {
  const std::lock_guard<std::mutex> lock(times().mutex);
  times().by_pass.clear();
}

int64_t total_pass_time() {
  return times().total.load(std::memory_order_relaxed);
}

}  // namespace torch_lazy
