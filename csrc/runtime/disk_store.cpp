#include "runtime/disk_store.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "base/config.h"
#include "base/metrics.h"

namespace torch_lazy {
namespace {

Metrics::ByName& uncounted() {
  static auto* const instance = new Metrics::ByName;
  return *instance;
}

// Made when the library is loaded: a fork that finds one being made leaves it so in the child.
[[maybe_unused]] const Metrics::ByName& counts_made_at_load = uncounted();
[[maybe_unused]] const std::string& build_made_at_load = this_build();

}  // namespace

DiskCache* DiskStore::get() {
  if (config().cache_bytes == 0 || config().cache_directory.empty()) return nullptr;
  if (DiskCache* const made = cache_.load(std::memory_order_acquire)) return made;
  auto made = std::make_unique<DiskCache>(std::filesystem::path(config().cache_directory) / folder_,
                                          most_bytes_, uncounted(), DiskCache::Says::kWhatIsBroken);
  DiskCache* by_another_thread = nullptr;
  if (!cache_.compare_exchange_strong(by_another_thread, made.get())) return by_another_thread;
  return made.release();
}

const std::string& this_build() {
  static const auto& build = *new std::string([] {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&this_build), &info) == 0) return std::string();
    std::error_code failed;
    const auto time = std::filesystem::last_write_time(info.dli_fname, failed);
    const auto bytes = std::filesystem::file_size(info.dli_fname, failed);
    return fmt::format("build {} {} torch {}", time.time_since_epoch().count(), bytes,
                       TORCH_VERSION);
  }());
  return build;
}

}  // namespace torch_lazy
