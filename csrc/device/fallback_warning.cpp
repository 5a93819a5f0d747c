#include "device/fallback_warning.h"

#include <fmt/format.h>

#include "base/config.h"
#include "base/metrics.h"
#include "base/warn.h"
#include "tape/python_frames.h"

namespace torch_lazy {

void warn_unknown_operator(const OperatorInfo& op) {
  if (increment(metrics().fallbacks[op.name]) != 1 || !config().warn_fallbacks) return;
  warn(fmt::format(
      "torch_lazy does not know what {} (called at {}) reads and writes: each call runs what is "
      "pending and then the operator, as eager would. Silence with "
      "torch.lazy.config.warn_fallbacks = False",
      op.name, to_string(current_location())));
}

}  // namespace torch_lazy
