#include "backend/registry.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>

#include "base/fork.h"

namespace torch_lazy {
namespace {

struct Registered {
  BackendFactory factory;
  std::unique_ptr<Backend> backend;
};

// Global because libraries register from static constructors. Never destroyed: windows may still
// run while the process exits.
struct Registry {
  ForkSafeMutex mutex{LockOrder::kBackends};  // guards `backends`
  std::map<std::string, Registered> backends;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Registry& made_at_load = registry();

}  // namespace

void register_backend(const std::string& name, BackendFactory factory, int interface_version) {
  TORCH_CHECK(interface_version == kBackendInterfaceVersion, "backend '", name,
              "' was built for version ", interface_version,
              " of torch_lazy's backend.h, this torch_lazy has version ", kBackendInterfaceVersion,
              ": rebuild the backend against this torch_lazy");
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const bool added = all.backends.emplace(name, Registered{factory, nullptr}).second;
  TORCH_CHECK(added, "a backend named '", name, "' is registered already: choose another name");
}

std::vector<std::string> registered_backends() {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& entry : all.backends) names.push_back(entry.first);
  return names;
}

Backend& backend_by_name(const std::string& name) {
  const std::string known = fmt::format("{}", fmt::join(registered_backends(), ", "));
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.backends.find(name);
  TORCH_CHECK(found != all.backends.end(), "no backend named '", name,
              "' is registered; there are: ", known);
  if (!found->second.backend) found->second.backend = found->second.factory();
  return *found->second.backend;
}

}  // namespace torch_lazy
