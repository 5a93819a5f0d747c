#include "backend/cpu/perf_map.h"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/config.h"
#include "base/warn.h"

namespace torch_lazy {

void add_to_perf_map(const void* code, size_t bytes, const std::string& name) {
  if (!config().perf_map) return;
  const std::string path = fmt::format("/tmp/perf-{}.map", getpid());
  std::ofstream file(path, std::ios::app);
  // One write for one line: other threads append, too.
  file << fmt::format("{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(code), bytes, name);
  file.flush();
  static std::atomic<bool> warned{false};
  if (!file && !warned.exchange(true))
    warn_in_background("kernels have no names in perf: " + path + " cannot be written");
}

}  // namespace torch_lazy
