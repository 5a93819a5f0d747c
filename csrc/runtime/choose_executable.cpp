#include "runtime/choose_executable.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "backend/registry.h"
#include "base/config.h"
#include "base/metrics.h"
#include "ir/print.h"
#include "runtime/choice_store.h"
#include "runtime/measured_choice.h"

namespace torch_lazy {
namespace {

bool may_measure(const std::string& backend, const CompileOptions& options) {
  return config().measured_choice && backend != kReferenceBackend && !options.deterministic &&
         !options.verify && backend_by_name(backend).device_runtime() == nullptr;
}

// For what this thread has given the device: other streams may wait for what it does next. Returns
// false for a device that nobody can wait for so, and where it has failed: who waits next is told.
bool wait_for(c10::Device device) {
  try {
    const auto* const guard = c10::impl::getDeviceGuardImpl(device.type());
    guard->synchronizeStream(guard->getStream(device));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string describe_window(const GraphToCompile& graph) {
  const auto nodes = graph.graph->nodes();
  const auto is_operation = [](const torch::jit::Node* node) {
    return node->kind() != c10::prim::Constant && node->kind() != c10::prim::ListConstruct;
  };
  const auto first = std::find_if(nodes.begin(), nodes.end(), is_operation);
  return fmt::format("graph {} of {} operations, recorded at {}", graph.hash.hex(),
                     std::count_if(nodes.begin(), nodes.end(), is_operation),
                     first == nodes.end() ? "an unknown line" : recorded_at(**first));
}

std::string backend_of(const Choice& choice, const std::string& compiling) {
  return choice.kind == ChoiceKind::kLibraryCalls ? kReferenceBackend : compiling;
}

CompileOptions options_of(const Choice& choice, CompileOptions options) {
  options.library_operations = choice.library_operations;
  return options;
}

// A race ends in a run of the script's, which does not wait for the disk. Where the process ends
// first, nothing is kept, and the next one measures again.
class RememberChoice final : public CompileJob {
 public:
  RememberChoice(std::string key, Choice choice)
      : key_(std::move(key)), choice_(std::move(choice)) {}
  void compile() override { remember_choice(key_, choice_); }

 private:
  const std::string key_;
  const Choice choice_;
};

MeasuredChoice::Surroundings surroundings_of(const std::string& backend,
                                             const GraphToCompile& graph,
                                             const CompileOptions& options, std::string key) {
  MeasuredChoice::Surroundings made;
  made.now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  if (!options.device.is_cpu()) made.wait = [device = options.device] { return wait_for(device); };
  made.compile = [backend, options, hash = graph.hash,
                  make = graph.make_again](const Choice& choice) {
    auto executable =
        compile_by(backend_of(choice, backend), {make(), hash, make}, options_of(choice, options));
    if (choice.kind == ChoiceKind::kPartlyLibraryCalls) increment(metrics().compiles);
    return executable;
  };
  made.enqueue = [](std::shared_ptr<CompileJob> job) { enqueue_compile(std::move(job)); };
  made.remember = [key = std::move(key)](const Choice& choice) {
    enqueue_compile(std::make_shared<RememberChoice>(key, choice));
  };
  made.window = describe_window(graph);
  return made;
}

}  // namespace

std::shared_ptr<Executable> choose_executable(const std::string& backend,
                                              const GraphToCompile& graph,
                                              const CompileOptions& options) {
  if (!may_measure(backend, options)) return compile_or_fall_back(backend, graph, options);
  std::string key = choice_key(backend, graph.hash, options);
  if (const std::optional<Choice> choice = recall_choice(key)) {
    increment(metrics().choices[std::string(name(choice->kind)) + ", remembered"]);
    return compile_or_fall_back(backend_of(*choice, backend), graph, options_of(*choice, options));
  }
  // Before the backend changes the graph.
  auto surroundings = surroundings_of(backend, graph, options, std::move(key));
  return std::make_shared<MeasuredChoice>(compile_or_fall_back(backend, graph, options),
                                          std::move(surroundings));
}

}  // namespace torch_lazy
