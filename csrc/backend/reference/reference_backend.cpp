#include "backend/reference/reference_backend.h"

#include "backend/processor_name.h"
#include "backend/registry.h"
#include "plan/executor.h"
#include "plan/library_plan.h"

namespace torch_lazy {
namespace {

class ReferenceBackend final : public Backend {
 public:
  std::optional<c10::DeviceType> device_type() const override { return std::nullopt; }
  std::string device_name() const override { return processor_name(); }

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    return std::make_shared<PlanExecutable>(
        library_plan(*graph, options.device, options.verify),
        std::make_unique<Launcher>(options.device, Launcher::Traits{.concurrent = true}));
  }
};

}  // namespace

void register_reference_backend() {
  register_backend("reference", []() -> std::unique_ptr<Backend> {
    return std::make_unique<ReferenceBackend>();
  });
}

}  // namespace torch_lazy
