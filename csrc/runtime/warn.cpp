#include "runtime/warn.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace torch_lazy {
namespace {

std::atomic<WarningSink> sink{nullptr};

}  // namespace

void warn(const std::string& message) {
  if (const WarningSink set = sink) return set(message);
  TORCH_WARN(message);
}

void set_warning_sink(WarningSink wanted) {
  sink = wanted;
}

}  // namespace torch_lazy
