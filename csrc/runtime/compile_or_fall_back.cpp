#include "runtime/compile_or_fall_back.h"

#include <c10/util/Exception.h>

#include <exception>
#include <utility>

#include "backend/registry.h"
#include "base/config.h"
#include "base/debug.h"
#include "base/metrics.h"
#include "base/warn.h"
#include "runtime/checked_executable.h"
#include "runtime/compile_watch.h"

namespace torch_lazy {
namespace {

std::shared_ptr<Executable> compile_watched(Backend& backend, const std::string& name,
                                            const GraphToCompile& graph,
                                            const CompileOptions& options) {
  const CompileWatch watch(name, graph.hash.hex());
  try {
    return backend.compile(graph.graph, options);
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    TORCH_CHECK(false, "it raised something that is no std::exception");
  }
}

}  // namespace

std::shared_ptr<Executable> compile_by(const std::string& name, const GraphToCompile& graph,
                                       const CompileOptions& options) {
  Backend& backend = backend_by_name(name);
  const std::optional<c10::DeviceType> type = backend.device_type();
  TORCH_CHECK(!type || *type == options.device.type(), "it compiles for device ",
              c10::DeviceTypeName(type.value_or(c10::kCPU), /*lower_case=*/true),
              ", and lazy tensors live on ", options.device);
  ExpectedOutputs expected(*graph.graph);
  std::shared_ptr<Executable> made = compile_watched(backend, name, graph, options);
  TORCH_CHECK(made, "it returned no executable");
  return checked_executable(std::move(made), std::move(expected), name);
}

std::shared_ptr<Executable> compile_or_fall_back(const std::string& backend,
                                                 const GraphToCompile& graph,
                                                 const CompileOptions& options) {
  try {
    return compile_by(backend, graph, options);
  } catch (const std::exception& error) {
    if (backend == kReferenceBackend) throw;
    if (increment(metrics().fallbacks["window not compiled"]) == 1 && config().warn_fallbacks)
      warn_in_background(
          "backend '" + backend +
          "' does not compile a window, which runs node by node instead: " + first_line(error));
    else if (config().debug >= kDebugGraphs)
      debug_print("not compiled: " + first_line(error));
    return compile_by(kReferenceBackend, {graph.make_again(), graph.hash, graph.make_again},
                      options);
  }
}

}  // namespace torch_lazy
