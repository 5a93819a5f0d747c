#include "runtime/control_groups.h"

#include <fstream>
#include <sstream>
#include <string>

namespace torch_lazy {
namespace {

using std::filesystem::path;

bool names(const std::string& controllers, std::string_view controller) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == controller) return true;
  return false;
}

std::vector<path> from_inside_out(const path& mounted, path group) {
  std::vector<path> folders;
  for (;; group = group.parent_path()) {
    folders.push_back(mounted / group);
    if (group.empty()) return folders;
  }
}

}  // namespace

ControlGroups control_groups(const path& root, std::string_view controller) {
  const path mounted = root / "sys/fs/cgroup";
  ControlGroups groups;
  // A line is a hierarchy's number, its controllers and the process's group in it; the unified one
  // has no controllers there.
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const path group = path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) groups.unified = from_inside_out(mounted, group);
    if (names(controllers, controller)) {
      groups.old = from_inside_out(mounted / controller, group);
      groups.own_in_old = group;
    }
  }
  return groups;
}

}  // namespace torch_lazy
