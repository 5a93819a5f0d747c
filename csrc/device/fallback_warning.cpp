#include "device/fallback_warning.h"

#include <c10/util/Exception.h>

#include "runtime/config.h"
#include "runtime/metrics.h"
#include "trace/source_location.h"

namespace torch_lazy {

void warn_unknown_operator(const OperatorInfo& op) {
  if (metrics().count_fallback(op.name) != 1 || !config().warn_fallbacks) return;
  TORCH_WARN("torch_lazy does not know what ", op.name, " (called at ",
             to_string(current_location()),
             ") reads and writes: each call runs what is pending and then the operator, as eager "
             "would. Silence with torch.lazy.config.warn_fallbacks = False");
}

}  // namespace torch_lazy
