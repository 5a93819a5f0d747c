#include "backend/cuda/kernel_graph.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <string>

namespace torch_lazy::cuda {
namespace {

constinit std::atomic<int64_t> kernels_alive{0};

// What printed kernels take: their structure of arguments, and the work items [begin, end).
struct Parameters {
  explicit Parameters(const PreparedLaunch& launch)
      : begin(0),
        end(launch.work_items),
        addresses{const_cast<uint64_t*>(launch.arguments.data()), &begin, &end} {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  int64_t begin, end;
  std::array<void*, 3> addresses;
};

KernelNode node_of(const PreparedLaunch& launch, Parameters& parameters) {
  const codegen::LaunchShape& shape = launch.kernel->shape;
  KernelNode node{};
  node.kernel = launch.kernel->code->kernel;
  node.grid_x = shape.grid_x;
  node.block_x = shape.block_x;
  node.block_y = shape.block_y;
  node.shared_bytes = shape.shared_bytes;
  node.parameters = parameters.addresses.data();
  return node;
}

std::string describe(c10::ArrayRef<PreparedLaunch> launches) {
  return fmt::format("{} kernels, {} to {},", launches.size(), launches.front().kernel->name,
                     launches.back().kernel->name);
}

}  // namespace

void launch_alone(const PreparedLaunch& launch, Stream stream) {
  Parameters parameters(launch);
  const codegen::LaunchShape& shape = launch.kernel->shape;
  const Result result =
      driver().launch(launch.kernel->code->kernel, shape.grid_x, 1, 1, shape.block_x, shape.block_y,
                      1, shape.shared_bytes, stream, parameters.addresses.data(), nullptr);
  if (result != kSuccess) [[unlikely]]
    check_taken(result, fmt::format("kernel {} cannot be launched", launch.kernel->name));
}

KernelGraph::KernelGraph(c10::ArrayRef<PreparedLaunch> launches) {
  const DuringCaptures relaxed;
  try {
    check(driver().create_graph(&graph_, 0), "a graph of kernels cannot be made");
    add_kernels(launches);
    check(driver().instantiate_graph(&executable_, graph_, 0),
          describe(launches) + " cannot be made ready to be launched together");
  } catch (...) {
    destroy();
    throw;
  }
  kernels_alive += int64_t(nodes_.size());
}

KernelGraph::~KernelGraph() {
  kernels_alive -= int64_t(nodes_.size());
  destroy();
}

// Each kernel behind the one before it, as on a stream.
void KernelGraph::add_kernels(c10::ArrayRef<PreparedLaunch> launches) {
  for (const PreparedLaunch& launch : launches) {
    Parameters parameters(launch);
    const KernelNode content = node_of(launch, parameters);
    GraphNode added = nullptr;
    check(driver().add_kernel_node(&added, graph_, nodes_.empty() ? nullptr : &nodes_.back(),
                                   nodes_.empty() ? 0 : 1, &content),
          fmt::format("kernel {} cannot be put into a graph", launch.kernel->name));
    nodes_.push_back(added);
    arguments_.push_back(launch.arguments);
  }
}

// The driver may be gone when the process ends, and says so then.
void KernelGraph::destroy() noexcept {
  const DuringCaptures relaxed;
  if (executable_) driver().destroy_executable_graph(executable_);
  if (graph_) driver().destroy_graph(graph_);
}

void KernelGraph::launch(c10::ArrayRef<PreparedLaunch> launches, Stream stream) {
  TORCH_INTERNAL_ASSERT(launches.size() == nodes_.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    if (launches[i].arguments == arguments_[i]) continue;
    Parameters parameters(launches[i]);
    const KernelNode content = node_of(launches[i], parameters);
    check(driver().set_kernel_node(executable_, nodes_[i], &content),
          fmt::format("the arguments of kernel {} cannot be changed", launches[i].kernel->name));
    arguments_[i] = launches[i].arguments;
  }
  check_taken(driver().launch_graph(executable_, stream),
              describe(launches) + " cannot be launched");
}

int64_t KernelGraph::kernels_in_graphs() {
  return kernels_alive;
}

}  // namespace torch_lazy::cuda
