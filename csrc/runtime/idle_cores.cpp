#include "runtime/idle_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>

#include "base/fork.h"
#include "base/pass_times.h"

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// Ten steps of the clock in /proc/stat.
constexpr nanoseconds kInterval = std::chrono::milliseconds(100);
// Of a core, and of each other one: the threads of a team wait for each other a little, so that
// busy cores are never busy all the time.
constexpr double kIdle = 0.75, kWaiting = 0.05;

// Of the main thread: those that record may be bound to cores of their own.
cpu_set_t main_threads_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(getpid(), sizeof set, &set);
  return set;
}

std::vector<int> numbers_of(const cpu_set_t& set) {
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  return cores;
}

std::string read_proc_stat() {
  std::ostringstream text;
  text << std::ifstream("/proc/stat").rdbuf();
  return text.str();
}

struct Look {
  Clock::time_point at;
  std::vector<int> cores;
  std::optional<nanoseconds> idle;
  nanoseconds compiled;  // by all compiles until then
  std::vector<ProcessorQuota> quotas;
};

Look look() {
  Look now{
      .at = Clock::now(), .cores = numbers_of(main_threads_cores()), .idle = {}, .compiled = {}};
  now.idle = idle_time(read_proc_stat(), now.cores);
  now.compiled = nanoseconds(total_pass_time());
  now.quotas = processor_quotas();
  return now;
}

bool compare(const Look& before, const Look& now) {
  const nanoseconds elapsed = now.at - before.at;
  // Passes within passes are counted twice.
  const nanoseconds compiled = std::min(elapsed, now.compiled - before.compiled);
  if (!quotas_left_a_core(before.quotas, now.quotas, compiled, elapsed)) return false;
  if (!now.idle) return true;
  if (!before.idle || before.cores != now.cores) return false;
  return had_idle_core(double(now.cores.size()), *now.idle - *before.idle + compiled, elapsed);
}

// Global: there is one compile thread a process.
struct Measured {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what follows
  std::optional<Look> last;
  bool answer = false;
  bool compiling = false;
};

Measured& measured() {
  static auto* const instance = new Measured;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Measured& idle_cores_made_at_load = measured();

void set_compiling(bool compiling) {
  Measured& all = measured();
  const std::lock_guard lock(all.mutex);
  all.compiling = compiling;
}

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

bool had_idle_core(double cores, nanoseconds idle, nanoseconds elapsed) {
  const double wanted = kIdle + kWaiting * (cores - 1);
  return cores > 1 && double(idle.count()) >= wanted * double(elapsed.count());
}

bool quotas_left_a_core(const std::vector<ProcessorQuota>& before,
                        const std::vector<ProcessorQuota>& now, nanoseconds compiled,
                        nanoseconds elapsed) {
  if (before.size() != now.size()) return false;
  for (size_t i = 0; i < now.size(); ++i) {
    const auto& [cores, used, group] = now[i];
    if (group != before[i].group) return false;
    const auto allowed = nanoseconds(int64_t(cores * double(elapsed.count())));
    if (!had_idle_core(cores, allowed - (used - before[i].used) + compiled, elapsed)) return false;
  }
  return true;
}

bool runs_on_one_core() {
  const cpu_set_t cores = main_threads_cores();
  return CPU_COUNT(&cores) == 1;
}

bool has_idle_core() {
  if (runs_on_one_core()) return false;
  Measured& all = measured();
  const std::lock_guard lock(all.mutex);
  if (all.compiling || (all.last && Clock::now() - all.last->at < kInterval)) return all.answer;
  Look now = look();
  all.answer = all.last && compare(*all.last, now);
  all.last = std::move(now);
  return all.answer;
}

void note_compile_begins() {
  set_compiling(true);
}

void note_compile_ends() {
  set_compiling(false);
}

}  // namespace torch_lazy
