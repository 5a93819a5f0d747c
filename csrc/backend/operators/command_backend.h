// What backends have in common whose plans are commands of a device: no kernels are made.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/device_runtime.h"
#include "backend/operator_table.h"
#include "base/api.h"

namespace torch_lazy {

struct GraphCompiler;

class TORCH_LAZY_API CommandBackend : public Backend {
 public:
  // `device_name`: of the hardware, for users to read.
  CommandBackend(c10::DeviceType type, std::string device_name, OperatorTable operators)
      : type_(type), device_name_(std::move(device_name)), operators_(std::move(operators)) {}
  // For a device that PyTorch has no kernels for.
  CommandBackend(std::unique_ptr<DeviceRuntime> runtime, std::string device_name,
                 OperatorTable operators)
      : type_(c10::kPrivateUse1),
        device_name_(std::move(device_name)),
        operators_(std::move(operators)),
        runtime_(std::move(runtime)) {}

  std::optional<c10::DeviceType> device_type() const override { return type_; }
  DeviceRuntime* device_runtime() override { return runtime_.get(); }
  std::string device_name() const override { return device_name_; }

 protected:
  // `graphs` takes parts of the graph whole, and the table what is left; it may be null.
  std::shared_ptr<Executable> compile_commands(const torch::jit::Graph& graph,
                                               const CompileOptions& options,
                                               const GraphCompiler* graphs) const;

 private:
  const c10::DeviceType type_;
  const std::string device_name_;
  const OperatorTable operators_;
  const std::unique_ptr<DeviceRuntime> runtime_;  // null where PyTorch has kernels
};

}  // namespace torch_lazy
