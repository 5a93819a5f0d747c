// Where the kernel shows the control groups that the process is in: a container's, or a service's
// (cgroups(7); the kernel's documents admin-guide/cgroup-v1 and admin-guide/cgroup-v2).
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace torch_lazy {

// The folders of a process's group and of those around it, from inside out. Of a container's some
// may not be seen, so that a folder need not exist.
struct ControlGroups {
  std::vector<std::filesystem::path> unified;  // the hierarchy of all controllers
  std::vector<std::filesystem::path> old;      // the hierarchy of one controller
  std::filesystem::path own_in_old;            // the process's own, from the hierarchy's root
};

// `root`: of the file system. `controller`: of the old hierarchy, such as "cpu".
ControlGroups control_groups(const std::filesystem::path& root, std::string_view controller);

}  // namespace torch_lazy
