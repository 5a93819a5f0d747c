#include "base/config.h"

#include <mutex>
#include <utility>

#include "base/fork.h"
#include "base/settings.h"

namespace torch_lazy {
namespace {

// Global, as Config is.
struct SelectedBackend {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards `name`
  std::string name = "cpu";
};

SelectedBackend& selected_backend() {
  static SelectedBackend& instance = *new SelectedBackend;
  return instance;
}

}  // namespace

std::string backend_name() {
  const std::lock_guard<std::mutex> lock(selected_backend().mutex);
  return selected_backend().name;
}

void set_backend_name(std::string name) {
  const std::lock_guard<std::mutex> lock(selected_backend().mutex);
  selected_backend().name = std::move(name);
}

Config& make_config() {
  auto* const made = new Config;
  read_environment(*made);
  return *made;
}

}  // namespace torch_lazy
