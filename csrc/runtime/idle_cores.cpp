#include "runtime/idle_cores.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>

#include "base/fork.h"

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;

// Ten steps of the clock in /proc/stat.
constexpr nanoseconds kInterval = std::chrono::milliseconds(100);
// A team of threads waits for each other a little, so busy cores are never busy all the time; and
// of the time that a compile takes beside them, they would have had a part.
constexpr double kIdle = 0.75;

// What the calling thread may run on.
std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  return cores;
}

nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return nanoseconds(0);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

std::optional<nanoseconds> read_idle_time() {
  std::ostringstream text;
  text << std::ifstream("/proc/stat").rdbuf();
  return idle_time(text.view(), own_cores());
}

struct Measured {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what follows
  // The clock of the compile thread. In the child of a fork that thread is gone, and its time is 0:
  // the first look is of no use then, and does no harm.
  std::optional<clockid_t> compile_thread;
  std::optional<IdleCores> cores;  // since the first question
};

// Made when the library is loaded: what is made during a fork is not covered by it.
Measured& measured() {
  static auto* const instance = new Measured;
  return *instance;
}

[[maybe_unused]] Measured& made_at_load = measured();

}  // namespace

std::optional<nanoseconds> idle_time(std::string_view proc_stat, const std::vector<int>& cores) {
  constexpr std::string_view kName = "cpu";
  std::istringstream lines{std::string(proc_stat)};
  size_t found = 0;
  int64_t ticks = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with(kName);) {
    std::istringstream words(line.substr(kName.size()));
    int core = 0;
    int64_t user = 0, nice = 0, system = 0, idle = 0, waiting_for_disk = 0;
    const bool is_of_all = line.starts_with("cpu ");
    if (is_of_all || !(words >> core >> user >> nice >> system >> idle >> waiting_for_disk))
      continue;
    if (!std::binary_search(cores.begin(), cores.end(), core)) continue;
    ++found;
    ticks += idle + waiting_for_disk;
  }
  if (ticks == 0 || found != cores.size()) return std::nullopt;
  return nanoseconds(ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
}

bool IdleCores::is_due(Nanoseconds now) const {
  return now - since_ >= kInterval;
}

void IdleCores::look(Nanoseconds now, Nanoseconds idle) {
  has_one_ = double((idle - idle_).count()) >= kIdle * double((now - since_).count());
  since_ = now;
  idle_ = idle;
}

bool has_one_core() {
  return own_cores().size() == 1;
}

bool has_core_to_spare() {
  if (has_one_core()) return false;
  const nanoseconds now = read_clock(CLOCK_MONOTONIC);
  Measured& all = measured();
  const std::lock_guard lock(all.mutex);
  if (all.cores && !all.cores->is_due(now)) return all.cores->has_one();
  const std::optional<nanoseconds> read = read_idle_time();
  if (!read) return true;
  const nanoseconds idle =
      *read + (all.compile_thread ? read_clock(*all.compile_thread) : nanoseconds(0));
  if (all.cores)
    all.cores->look(now, idle);
  else
    all.cores.emplace(now, idle);
  return all.cores->has_one();
}

void note_compile_thread() {
  clockid_t clock = 0;
  const bool found = pthread_getcpuclockid(pthread_self(), &clock) == 0;
  Measured& all = measured();
  const std::lock_guard lock(all.mutex);
  all.compile_thread = found ? std::optional(clock) : std::nullopt;
}

}  // namespace torch_lazy
