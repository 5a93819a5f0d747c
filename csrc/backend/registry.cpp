#include "backend/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/fork.h"
#include "base/warn.h"

namespace torch_lazy {
namespace {

struct Registered {
  BackendFactory factory;
  BackendCheck check;  // null for none
  std::string file;
  std::string error;
  std::unique_ptr<Backend> backend;
};

// Global: one registry a process. Never destroyed, and no backend with it: windows may still run
// while the process exits, and a destructor of a backend could find its driver gone.
struct Registry {
  // One backend is made at a time, which may take long and may fork: held over no fork, unlike the
  // locks that threads take while they record. Before `mutex`.
  std::mutex making;
  ForkSafeMutex mutex{LockOrder::kBackends};  // guards `backends`
  std::map<std::string, Registered> backends;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Registry& registry_made_at_load = registry();

// Entries are never removed, so a pointer to one stays valid. Raises where there is none.
Registered& entry(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.backends.find(name);
  if (found != all.backends.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& registered : all.backends) names.push_back(registered.first);
  throw std::runtime_error(fmt::format("no backend named '{}' is registered; there are: {}", name,
                                       fmt::join(names, ", ")));
}

Backend* made(const Registered& registered) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  return registered.backend.get();
}

BackendOutlook outlook(const Registered& registered) {
  return registered.check != nullptr ? registered.check() : BackendOutlook();
}

// Returns why it failed; empty where it did not.
std::string make(const Registered& registered, std::unique_ptr<Backend>& backend) {
  try {
    std::string error = outlook(registered).error;
    if (!error.empty()) return error;
    backend = registered.factory();
    return backend ? "" : "its factory returned nothing";
  } catch (const std::exception& error) {
    return first_line(error);
  } catch (...) {
    return "its factory raised something that is no std::exception";
  }
}

}  // namespace

void register_backend(const std::string& name, BackendFactory factory, const std::string& file,
                      BackendCheck check) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto [place, added] =
      all.backends.try_emplace(name, Registered{factory, check, file, "", nullptr});
  // Two threads may load the same library.
  if (added || (!file.empty() && place->second.file == file)) return;
  const std::string& other = place->second.file;
  throw std::runtime_error(
      fmt::format("a backend named '{}' is registered already, {}: choose "
                  "another name",
                  name, other.empty() ? "a built-in one" : "from " + other));
}

std::vector<RegisteredBackend> registered_backends() {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<RegisteredBackend> found;
  for (const auto& [name, backend] : all.backends) {
    BackendOutlook known = outlook(backend);
    if (!backend.error.empty()) known.error = backend.error;
    found.push_back({name, backend.file, std::move(known.error), std::move(known.libraries)});
  }
  return found;
}

bool is_registered(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.backends.contains(name);
}

Backend& backend_by_name(const std::string& name) {
  Registered& registered = entry(name);
  if (Backend* backend = made(registered)) return *backend;
  const PausableWork work;  // a fork by another thread waits for it
  const std::lock_guard<std::mutex> making(registry().making);
  if (Backend* backend = made(registered)) return *backend;
  std::unique_ptr<Backend> backend;
  const std::string error = make(registered, backend);
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registered.error = error;
  if (!error.empty())
    throw std::runtime_error(fmt::format("backend '{}' cannot be made: {}", name, error));
  registered.backend = std::move(backend);
  return *registered.backend;
}

}  // namespace torch_lazy
