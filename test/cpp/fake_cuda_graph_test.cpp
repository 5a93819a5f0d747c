// Graphs of the fake driver behave as the real one's: order, arguments, lives.

#include <gtest/gtest.h>

#include "fake_driver.h"

namespace torch_lazy {
namespace {

using tests::cuda;
using tests::kBytes;

class FakeCudaGraph : public tests::FakeCuda {
 protected:
  void SetUp() override {
    FakeCuda::SetUp();
    ASSERT_EQ(cuda().call("cuGraphCreate", &graph, 0u), CUDA_SUCCESS);
    upload(x, ones.data(), nullptr);
  }

  // to = from + number.
  CUgraphNode add_node(CUdeviceptr from, CUdeviceptr to, float number,
                       CUgraphNode after = nullptr) {
    void* parameters[] = {&from, &to, &number};
    const CUDA_KERNEL_NODE_PARAMS content = content_of(parameters);
    CUgraphNode node = nullptr;
    EXPECT_EQ(
        cuda().call("cuGraphAddKernelNode_v2", &node, graph, const_cast<const CUgraphNode*>(&after),
                    size_t(after != nullptr), &content),
        CUDA_SUCCESS);
    return node;
  }
  int change(CUgraphExec executable, CUgraphNode node, CUdeviceptr from, CUdeviceptr to,
             float number) {
    void* parameters[] = {&from, &to, &number};
    const CUDA_KERNEL_NODE_PARAMS content = content_of(parameters);
    return cuda().call("cuGraphExecKernelNodeSetParams_v2", executable, node, &content);
  }
  CUgraphExec instantiated() {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(cuda().call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), CUDA_SUCCESS);
    return executable;
  }
  static int launch_graph(CUgraphExec executable, CUstream on = nullptr) {
    return cuda().call("cuGraphLaunch", executable, on);
  }

  CUgraph graph = nullptr;

 private:
  CUDA_KERNEL_NODE_PARAMS content_of(void** parameters) const {
    CUDA_KERNEL_NODE_PARAMS content{};
    content.kern = reinterpret_cast<CUkernel>(add);
    content.gridDimX = content.gridDimY = content.gridDimZ = 1;
    content.blockDimX = 32;
    content.blockDimY = content.blockDimZ = 1;
    content.kernelParams = parameters;
    return content;
  }
};

TEST_F(FakeCudaGraph, KernelsRunInTheOrderOfTheirDependencies) {
  const CUdeviceptr z = allocate();
  const CUgraphNode sum = add_node(x, y, 2);
  add_node(y, z, 10, sum);

  ASSERT_EQ(launch_graph(instantiated()), CUDA_SUCCESS);

  EXPECT_EQ(first(z), 13);
  EXPECT_EQ(findings(), "");
}

TEST_F(FakeCudaGraph, ADependencyThatIsMissingShows) {
  const CUdeviceptr z = allocate();
  add_node(x, y, 2);
  add_node(y, z, 10);

  launch_graph(instantiated());

  EXPECT_NE(synchronize(), CUDA_SUCCESS);
  EXPECT_NE(findings().find("uninitialized"), std::string::npos);
}

TEST_F(FakeCudaGraph, ALaunchHasTheArgumentsThatTheGraphHadThen) {
  const CUgraphNode node = add_node(x, y, 2);
  const CUgraphExec executable = instantiated();
  const CUdeviceptr z = allocate();

  launch_graph(executable);
  ASSERT_EQ(change(executable, node, x, z, 5), CUDA_SUCCESS);
  launch_graph(executable);

  EXPECT_EQ(first(y), 3);
  EXPECT_EQ(first(z), 6);
}

TEST_F(FakeCudaGraph, ItMayBeDestroyedBeforeTheDeviceHasRunIt) {
  add_node(x, y, 2);
  const CUgraphExec executable = instantiated();
  launch_graph(executable);

  EXPECT_EQ(cuda().call("cuGraphExecDestroy", executable), CUDA_SUCCESS);
  EXPECT_EQ(cuda().call("cuGraphDestroy", graph), CUDA_SUCCESS);

  EXPECT_EQ(first(y), 3);
  EXPECT_EQ(launch_graph(executable), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(FakeCudaGraph, ANodeOfAnotherGraphIsRefused) {
  add_node(x, y, 2);
  const CUgraphExec executable = instantiated();
  const CUgraphNode later = add_node(x, y, 3);

  EXPECT_EQ(change(executable, later, x, y, 4), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace torch_lazy
