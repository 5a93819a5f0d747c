// Limits on the processor time of the control groups that the process is in: a container's, or a
// service's. A process that uses it up is stopped for the rest of a tenth of a second, with cores
// idle beside it (the kernel's document scheduler/sched-bwc).
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace torch_lazy {

struct ProcessorQuota {
  double cores;                   // so many of them in use all the time are the limit
  std::chrono::nanoseconds used;  // by all processes of the group, since it was made
  std::string group;              // its folder
};

// Of the process's group and those around it that have a limit and can be seen; none where nothing
// tells. `root`: of the file system.
std::vector<ProcessorQuota> processor_quotas(const std::filesystem::path& root = "/");

}  // namespace torch_lazy
