#include "base/config.h"

#include <mutex>
#include <utility>

#include "base/fork.h"
#include "base/settings.h"

namespace torch_lazy {
namespace {

// Global, as Config is.
struct Names {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what is below
  std::string backend = "cpu";
  bool backend_is_named = false;
  std::string device;
};

Names& names() {
  static Names& instance = *new Names;
  return instance;
}

}  // namespace

std::string backend_name() {
  const std::lock_guard<std::mutex> lock(names().mutex);
  return names().backend;
}

void set_backend_name(std::string name) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  names().backend = std::move(name);
  names().backend_is_named = true;
}

bool is_backend_named() {
  const std::lock_guard<std::mutex> lock(names().mutex);
  return names().backend_is_named;
}

std::string device_name() {
  const std::lock_guard<std::mutex> lock(names().mutex);
  return names().device;
}

void set_device_name(std::string name) {
  const std::lock_guard<std::mutex> lock(names().mutex);
  names().device = std::move(name);
}

Config& make_config() {
  static Config& instance = *[] {
    auto* const made = new Config;
    read_environment(*made);
    return made;
  }();
  return instance;
}

}  // namespace torch_lazy
