#include "runtime/compile_or_fall_back.h"

#include <exception>

#include "backend/registry.h"
#include "base/config.h"
#include "base/debug.h"
#include "base/metrics.h"
#include "base/warn.h"

namespace torch_lazy {
namespace {

// Runs what the chosen backend does not support: node by node, through ATen.
constexpr const char* kReferenceBackend = "reference";

}  // namespace

std::shared_ptr<Executable> compile_or_fall_back(const std::string& backend,
                                                 const std::shared_ptr<torch::jit::Graph>& graph,
                                                 const CompileOptions& options) {
  try {
    Backend& chosen = backend_by_name(backend);
    const auto type = chosen.device_type();
    TORCH_CHECK(!type || *type == options.device.type(), "backend '", backend,
                "' compiles for device ", c10::DeviceTypeName(*type, true),
                ", and lazy tensors live on ", options.device);
    return chosen.compile(graph, options);
  } catch (const std::exception& error) {
    if (backend == kReferenceBackend) throw;
    if (increment(metrics().fallbacks["window not compiled"]) == 1 && config().warn_fallbacks)
      warn_in_background(
          "backend '" + backend +
          "' does not compile a window, which runs node by node instead: " + first_line(error));
    else if (config().debug >= kDebugGraphs)
      debug_print("not compiled: " + first_line(error));
    return backend_by_name(kReferenceBackend).compile(graph, options);
  }
}

}  // namespace torch_lazy
