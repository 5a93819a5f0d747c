#include "runtime/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "runtime/control_groups.h"

namespace torch_lazy {

uint64_t memory_limit(const std::filesystem::path& root) {
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  const auto limit_by = [&](const std::filesystem::path& file) {
    uint64_t most = 0;
    if (std::ifstream(file) >> most) bytes = std::min(bytes, most);  // no limit is a word
  };
  const ControlGroups groups = control_groups(root, "memory");
  for (const auto& folder : groups.unified) limit_by(folder / "memory.max");
  for (const auto& folder : groups.old) limit_by(folder / "memory.limit_in_bytes");
  return bytes;
}

}  // namespace torch_lazy
