#include "base/config.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "base/disk_cache.h"
#include "base/warn.h"

namespace torch_lazy {
namespace {

// A setting that cannot be understood keeps its default and says so once: a typing error in the
// environment must not break `import torch`.
template <class Target>
void read_integer(const char* name, int64_t low, int64_t high, Target& target) {
  const char* text = std::getenv(name);
  if (!text || !*text) return;
  int64_t value = 0;
  const auto parsed = std::from_chars(text, text + std::strlen(text), value);
  if (parsed.ec != std::errc() || *parsed.ptr || value < low || value > high) {
    TORCH_WARN(name, "=", text, " is ignored: expected an integer from ", low, " to ", high);
    return;
  }
  target = static_cast<decltype(target.load())>(value);
}

// One of two words.
template <class Target, class Value>
void read_choice(const char* name, Target& target, const char* first, Value if_first,
                 const char* second, Value if_second) {
  const char* text = std::getenv(name);
  if (!text || !*text) return;
  if (std::strcmp(text, first) == 0) {
    target = if_first;
  } else if (std::strcmp(text, second) == 0) {
    target = if_second;
  } else {
    TORCH_WARN(name, "=", text, " is ignored: expected '", first, "' or '", second, "'");
  }
}

void read_environment(Config& config) {
  if (const char* backend = std::getenv("TORCH_LAZY_BACKEND"); backend && *backend)
    set_backend_name(current_backend_name(backend));
  std::atomic<int> enabled{1};
  read_integer("TORCH_LAZY", 0, 1, enabled);
  if (!enabled) config.defer = Defer::kNever;
  read_integer("TORCH_LAZY_VERIFY", 0, 1, config.verify);
  read_integer("TORCH_LAZY_CHECK_EFFECTS", 0, 1, config.check_effects);
  read_integer("TORCH_LAZY_VERIFY_PASSES", 0, 1, config.verify_passes);
  read_integer("TORCH_LAZY_WARN_FALLBACKS", 0, 1, config.warn_fallbacks);
  read_integer("TORCH_LAZY_PERF_MAP", 0, 1, config.perf_map);
  read_integer("TORCH_LAZY_DEBUG", 0, 5, config.debug);
  read_integer("TORCH_LAZY_WINDOW_OPERATIONS", 1, int64_t(1) << 31, config.window_operations);
  read_integer("TORCH_LAZY_WINDOW_BYTES", 1, INT64_MAX, config.window_bytes);
  read_integer("TORCH_LAZY_REMATERIALIZE_BYTES", 0, INT64_MAX, config.rematerialize_bytes);
  read_choice("TORCH_LAZY_RNG", config.rng, "philox", RandomNumbers::kPhilox, "eager",
              RandomNumbers::kEager);
  read_choice("TORCH_LAZY_ALLOCATOR", config.allocator, "caching", AllocatorKind::kCaching,
              "system", AllocatorKind::kSystem);
  std::atomic<int64_t> cache_bytes{config.cache_bytes};
  read_integer("TORCH_LAZY_CACHE_BYTES", 0, INT64_MAX, cache_bytes);
  config.cache_bytes = cache_bytes;
  const char* const cache = std::getenv("TORCH_LAZY_CACHE_DIR");
  // Made absolute now: the process may go to another directory.
  std::error_code no_directory;
  config.cache_directory = cache && *cache ? std::filesystem::absolute(cache, no_directory).string()
                                           : default_cache_directory();
}

std::mutex backend_mutex;  // guards what selected_backend() refers to

std::string& selected_backend() {
  static std::string& name = *new std::string("cpu");
  return name;
}

}  // namespace

std::string backend_name() {
  config();  // has read the environment
  const std::lock_guard<std::mutex> lock(backend_mutex);
  return selected_backend();
}

std::string current_backend_name(std::string name) {
  if (name != "interpreter") return name;
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) warn("torch_lazy's backend 'interpreter' is called 'reference' now");
  return "reference";
}

void set_backend_name(std::string name) {
  const std::lock_guard<std::mutex> lock(backend_mutex);
  selected_backend() = std::move(name);
}

Config& make_config() {
  auto* const made = new Config;
  read_environment(*made);
  return *made;
}

}  // namespace torch_lazy
