#include "runtime/config.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

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

void read_environment(Config& config) {
  std::atomic<int> enabled{1};
  read_integer("TORCH_LAZY", 0, 1, enabled);
  if (!enabled) config.defer = Defer::kNever;
  read_integer("TORCH_LAZY_VERIFY", 0, 1, config.verify);
  read_integer("TORCH_LAZY_CHECK_EFFECTS", 0, 1, config.check_effects);
  read_integer("TORCH_LAZY_WARN_FALLBACKS", 0, 1, config.warn_fallbacks);
  read_integer("TORCH_LAZY_DEBUG", 0, 5, config.debug);
  read_integer("TORCH_LAZY_WINDOW_OPERATIONS", 1, int64_t(1) << 31, config.window_operations);
  read_integer("TORCH_LAZY_WINDOW_BYTES", 1, INT64_MAX, config.window_bytes);
}

}  // namespace

Config& make_config() {
  auto* const made = new Config;
  read_environment(*made);
  return *made;
}

}  // namespace torch_lazy
