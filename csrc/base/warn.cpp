#include "base/warn.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdio>
#include <exception>

namespace torch_lazy {
namespace {

std::atomic<WarningSink> sink{nullptr};

}  // namespace

void warn(const std::string& message) {
  if (const WarningSink set = sink) return set(message);
  TORCH_WARN(message);
}

void warn_in_background(const std::string& message) noexcept {
  try {
    warn(message);
  } catch (const std::exception&) {
    std::fprintf(stderr, "[torch_lazy] %s\n", message.c_str());
  }
}

void set_warning_sink(WarningSink wanted) {
  sink = wanted;
}

}  // namespace torch_lazy
