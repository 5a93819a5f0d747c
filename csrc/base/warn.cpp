#include "base/warn.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdio>

#include "base/fork.h"

namespace torch_lazy {
namespace {

std::atomic<WarningSink> sink{nullptr};

}  // namespace

void warn(const std::string& message) {
  if (const WarningSink set = sink) return set(message);
  TORCH_WARN(message);
}

void warn_in_background(const std::string& message) noexcept {
  const BlockedWork waits_for_the_interpreter;
  try {
    warn(message);
  } catch (const std::exception&) {
    std::fprintf(stderr, "[torch_lazy] %s\n", message.c_str());
  }
}

std::string first_line(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find('\n'));
}

void set_warning_sink(WarningSink wanted) {
  sink = wanted;
}

}  // namespace torch_lazy
