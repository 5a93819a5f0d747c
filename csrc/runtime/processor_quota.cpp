#include "runtime/processor_quota.h"

#include <fstream>
#include <optional>
#include <sstream>

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;
using std::filesystem::path;

std::optional<int64_t> number_in(const path& file) {
  std::ifstream text(file);
  int64_t number = 0;
  if (!(text >> number)) return std::nullopt;
  return number;
}

// In microseconds, both; no quota is -1 or a word.
double cores_of(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? double(quota) / double(period) : 0;
}

// The unified hierarchy has one folder for all controllers.
std::optional<ProcessorQuota> read_unified(const path& folder) {
  std::ifstream limit(folder / "cpu.max");
  int64_t quota = 0, period = 0;
  if (!(limit >> quota >> period)) return std::nullopt;
  std::ifstream statistics(folder / "cpu.stat");
  std::string name;
  for (int64_t value = 0; statistics >> name >> value;)
    if (name == "usage_usec")
      return ProcessorQuota{cores_of(quota, period), std::chrono::microseconds(value), folder};
  return std::nullopt;
}

// The old one has a hierarchy for each controller: one has the limit, another one counts. Nobody
// makes groups in one of the two alone.
std::optional<ProcessorQuota> read_old(const path& folder, const path& counting) {
  const auto quota = number_in(folder / "cpu.cfs_quota_us");
  const auto period = number_in(folder / "cpu.cfs_period_us");
  const auto used = number_in(counting / "cpuacct.usage");
  if (!quota || !period || !used) return std::nullopt;
  return ProcessorQuota{cores_of(*quota, *period), nanoseconds(*used), folder};
}

// Where the process is, by /proc/self/cgroup, in the unified hierarchy and in the old one of
// processors.
struct Groups {
  std::optional<path> unified, old;
};

Groups groups_of(const path& root) {
  Groups groups;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const path group = path(line.substr(second + 1)).relative_path();
    if (second == first + 1) groups.unified = group;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    for (std::string controller; std::getline(controllers, controller, ',');)
      if (controller == "cpu") groups.old = group;
  }
  return groups;
}

// Calls read(group) for a group and those around it. Of a container's some may not be seen.
template <typename Read>
void read_upwards(path group, const Read& read, std::vector<ProcessorQuota>& quotas) {
  for (;; group = group.parent_path()) {
    if (auto quota = read(group); quota && quota->cores > 0) quotas.push_back(std::move(*quota));
    if (group.empty()) return;
  }
}

}  // namespace

std::vector<ProcessorQuota> processor_quotas(const path& root) {
  const Groups groups = groups_of(root);
  const path mounted = root / "sys/fs/cgroup";
  std::vector<ProcessorQuota> quotas;
  if (groups.unified)
    read_upwards(
        *groups.unified, [&](const path& group) { return read_unified(mounted / group); }, quotas);
  if (groups.old)
    read_upwards(
        *groups.old,
        [&](const path& group) {
          return read_old(mounted / "cpu" / group, mounted / "cpuacct" / group);
        },
        quotas);
  return quotas;
}

}  // namespace torch_lazy
