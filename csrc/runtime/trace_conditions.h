// What a trace is compiled for besides its operations.
#pragma once

#include <c10/core/Device.h>

namespace torch_lazy {

// As CompileOptions has them. The rest of the global state is in force when the executable runs.
struct TraceConditions {
  c10::Device device = c10::kCPU;
  bool deterministic = false;
  bool operator==(const TraceConditions&) const = default;
};

}  // namespace torch_lazy
