#include "runtime/processor_quota.h"

#include <fstream>
#include <optional>

#include "runtime/control_groups.h"

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

// The old one has a hierarchy for each controller: one has the limit, another one counts.
std::optional<ProcessorQuota> read_old(const path& folder, const path& counting) {
  const auto quota = number_in(folder / "cpu.cfs_quota_us");
  const auto period = number_in(folder / "cpu.cfs_period_us");
  const auto used = number_in(counting / "cpuacct.usage");
  if (!quota || !period || !used) return std::nullopt;
  return ProcessorQuota{cores_of(*quota, *period), nanoseconds(*used), folder};
}

}  // namespace

std::vector<ProcessorQuota> processor_quotas(const path& root) {
  std::vector<ProcessorQuota> quotas;
  const auto keep = [&](std::optional<ProcessorQuota> quota) {
    if (quota && quota->cores > 0) quotas.push_back(std::move(*quota));
  };
  const ControlGroups limiting = control_groups(root, "cpu");
  const ControlGroups counting = control_groups(root, "cpuacct");
  for (const path& folder : limiting.unified) keep(read_unified(folder));
  // Where the process is in another group of the other hierarchy, what is counted is not what is
  // limited.
  if (limiting.own_in_old == counting.own_in_old && limiting.old.size() == counting.old.size())
    for (size_t i = 0; i < limiting.old.size(); ++i)
      keep(read_old(limiting.old[i], counting.old[i]));
  return quotas;
}

}  // namespace torch_lazy
