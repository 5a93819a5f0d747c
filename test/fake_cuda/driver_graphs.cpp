// Graphs of kernels. Kernels that no dependency orders run in the order that is least likely to be
// meant: those added last run first.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "fake_cuda/kernel_work.h"

using torch_lazy::fake_cuda::Device;
using torch_lazy::fake_cuda::enter;
using torch_lazy::fake_cuda::Failure;
using torch_lazy::fake_cuda::KernelWork;
using torch_lazy::fake_cuda::Needs;
using torch_lazy::simt::Dim3;

struct CUgraphNode_st {
  KernelWork work;
  std::vector<CUgraphNode> dependencies;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // as added
};

struct CUgraphExec_st {
  std::map<CUgraphNode, KernelWork> work;
  std::vector<CUgraphNode> order;
};

namespace {

std::set<CUgraph>& graphs() {
  static auto* const made = new std::set<CUgraph>;
  return *made;
}

std::set<CUgraphExec>& executable_graphs() {
  static auto* const made = new std::set<CUgraphExec>;
  return *made;
}

template <class Handle>
auto& checked(const std::set<Handle>& known, Handle handle) {
  if (!known.contains(handle)) throw Failure{CUDA_ERROR_INVALID_HANDLE};
  return *handle;
}

KernelWork work_of(const CUDA_KERNEL_NODE_PARAMS& node) {
  if (node.extra != nullptr) throw Failure{CUDA_ERROR_NOT_SUPPORTED};
  const CUfunction function = node.func ? node.func : reinterpret_cast<CUfunction>(node.kern);
  if (function == nullptr || node.ctx != nullptr) throw Failure{CUDA_ERROR_INVALID_VALUE};
  return {*function, Dim3{node.gridDimX, node.gridDimY, node.gridDimZ},
          Dim3{node.blockDimX, node.blockDimY, node.blockDimZ}, node.sharedMemBytes,
          node.kernelParams};
}

std::vector<CUgraphNode> order_of(const CUgraph_st& graph) {
  std::vector<CUgraphNode> order;
  std::set<CUgraphNode> done;
  const auto is_ready = [&](const CUgraphNode_st& node) {
    return std::all_of(node.dependencies.begin(), node.dependencies.end(),
                       [&](CUgraphNode before) { return done.contains(before); });
  };
  while (order.size() < graph.nodes.size()) {
    const auto next = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), [&](const auto& node) {
      return !done.contains(node.get()) && is_ready(*node);
    });
    order.push_back(next->get());
    done.insert(next->get());
  }
  return order;
}

}  // namespace

FAKE_CUDA_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  return enter(Needs::kContext, [&] {
    if (flags != 0) throw Failure{CUDA_ERROR_INVALID_VALUE};
    *graph = new CUgraph_st;
    graphs().insert(*graph);
  });
}

FAKE_CUDA_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  return enter(Needs::kInit, [&] {
    checked(graphs(), graph);
    graphs().erase(graph);
    delete graph;
  });
}

FAKE_CUDA_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* added, CUgraph graph,
                                                  const CUgraphNode* dependencies, size_t count,
                                                  const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return enter(Needs::kContext, [&] {
    CUgraph_st& to = checked(graphs(), graph);
    for (size_t i = 0; i < count; ++i)
      if (std::none_of(to.nodes.begin(), to.nodes.end(),
                       [&](const auto& node) { return node.get() == dependencies[i]; }))
        throw Failure{CUDA_ERROR_INVALID_VALUE};
    to.nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{
        work_of(*parameters), std::vector<CUgraphNode>(dependencies, dependencies + count)}));
    *added = to.nodes.back().get();
  });
}

FAKE_CUDA_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                                      unsigned long long flags) {
  return enter(Needs::kContext, [&] {
    if (flags != 0) throw Failure{CUDA_ERROR_NOT_SUPPORTED};
    torch_lazy::fake_cuda::forbid_while_capturing();
    const CUgraph_st& from = checked(graphs(), graph);
    torch_lazy::fake_cuda::fail_if_due(Device::get().graphs_before_failure,
                                       CUDA_ERROR_OUT_OF_MEMORY);
    *executable = new CUgraphExec_st;
    executable_graphs().insert(*executable);
    for (const auto& node : from.nodes) (*executable)->work.emplace(node.get(), node->work);
    (*executable)->order = order_of(from);
  });
}

// What runs goes on to its end.
FAKE_CUDA_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return enter(Needs::kInit, [&] {
    checked(executable_graphs(), executable);
    executable_graphs().erase(executable);
    delete executable;
  });
}

// Later launches have it, earlier ones do not.
FAKE_CUDA_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(
    CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return enter(Needs::kContext, [&] {
    auto& work = checked(executable_graphs(), executable).work;
    const auto found = work.find(node);
    if (found == work.end()) throw Failure{CUDA_ERROR_INVALID_VALUE};
    found->second = work_of(*parameters);
  });
}

FAKE_CUDA_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return enter(Needs::kContext, [&] {
    const CUgraphExec_st& launched = checked(executable_graphs(), executable);
    torch_lazy::fake_cuda::fail_if_due(Device::get().launches_before_failure,
                                       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    for (const CUgraphNode node : launched.order)
      launched.work.at(node).enqueue(Device::get().stream(stream));
    ++Device::get().graph_launches;
  });
}

// How many graphs were launched so far; for tests.
FAKE_CUDA_EXPORT int64_t fake_cuda_graph_launches() {
  return Device::get().graph_launches;
}
