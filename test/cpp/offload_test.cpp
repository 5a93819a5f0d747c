// A device made of a backend's runtime: which bytes move between host and device, and when.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "backend/runtime_registration.h"
#include "base/metrics.h"
#include "offload/copy_on_device.h"
#include "offload/mirrored_storage.h"
#include "offload/runtime_device.h"

namespace torch_lazy {
namespace {

// Memory of the process in the place of a device's.
class ProcessMemory final : public DeviceRuntime {
 public:
  std::string type_name() const override { return "offloaded"; }
  void* allocate(c10::DeviceIndex, size_t bytes) override {
    return is_full ? nullptr : std::malloc(bytes);
  }
  void free(void* address) noexcept override { std::free(address); }
  void copy(c10::DeviceIndex, void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  uint64_t record_event(c10::DeviceIndex) override { return 0; }
  bool is_done(c10::DeviceIndex, uint64_t) override { return true; }
  void wait_for(c10::DeviceIndex, uint64_t) override {}

  bool is_full = false;
};

class OffloadTest : public testing::Test {
 protected:
  void SetUp() override {
    register_runtime_device(runtime());
    metrics().reset();
  }

  static ProcessMemory& runtime() {
    static ProcessMemory& runtime = *new ProcessMemory;
    return runtime;
  }

  // Bytes moved since the last call.
  static std::map<std::string, int64_t> moved() {
    const auto counts = metrics().bytes_moved.counts();
    metrics().reset();
    return counts;
  }

  static at::Tensor to_device(const at::Tensor& tensor) {
    return tensor.to(c10::Device(c10::kPrivateUse1));
  }
  static void* address(const at::Tensor& tensor, Access access) {
    return DeviceAddresses().of(tensor, access);
  }
  // What a window's kernels do.
  static void fill_on_device(const at::Tensor& tensor, float value) {
    auto* const elements = static_cast<float*>(address(tensor, Access::kWrite));
    for (int64_t i = 0; i < tensor.numel(); ++i) elements[i] = value;
  }
};

using Moved = std::map<std::string, int64_t>;

TEST_F(OffloadTest, ARuntimeThatReturnsNoMemoryHasNone) {
  runtime().is_full = true;
  EXPECT_THROW(address(to_device(at::ones({4})), Access::kRead), c10::OutOfMemoryError);
  runtime().is_full = false;
  EXPECT_EQ(to_device(at::ones({4})).sum().item<float>(), 4);
}

TEST(RuntimeName, IsOneThatADeviceTypeCanHave) {
  for (const char* const name : {"", "Acme", "acme 2", "cpu", "lazy", "cuda"})
    EXPECT_THROW(check_type_name(name), c10::Error) << name;
  for (const char* const name : {"acme", "acme_two"}) EXPECT_NO_THROW(check_type_name(name));
}

TEST_F(OffloadTest, OperatorsRunOnTheHostAndMoveNothing) {
  const at::Tensor x = to_device(at::arange(6, at::kFloat).view({2, 3}));

  const at::Tensor y = x.t().mm(x).add_(1);

  EXPECT_TRUE(y.is_privateuseone());
  EXPECT_EQ(moved(), Moved());
  EXPECT_TRUE(y.cpu().equal(x.cpu().t().mm(x.cpu()).add(1)));
}

TEST_F(OffloadTest, BytesMoveToTheDeviceOnceAndStayOnBothSides) {
  const at::Tensor x = to_device(at::ones({4}));

  address(x, Access::kRead);
  address(x, Access::kRead);
  x.sum();

  EXPECT_EQ(moved(), (Moved{{"to device: a window", 16}}));
}

TEST_F(OffloadTest, WhatTheDeviceWroteMovesToTheOperatorThatReadsIt) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);
  moved();

  EXPECT_EQ(x.max().item<float>(), 3);

  EXPECT_EQ(moved(), (Moved{{"to host: aten::max", 16}}));
}

TEST_F(OffloadTest, ViewsShareTheBytesOnBothSides) {
  const at::Tensor base = to_device(at::zeros({2, 2}));
  const at::Tensor row = base.select(0, 1);

  fill_on_device(base, 2);
  row.add_(1);
  at::Tensor in_window = at::empty({2, 2});
  std::memcpy(in_window.mutable_data_ptr(), address(base, Access::kRead), 16);

  EXPECT_TRUE(in_window.equal(at::tensor({2.f, 2.f, 3.f, 3.f}).view({2, 2})));
}

TEST_F(OffloadTest, MakingAViewMovesNothing) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);
  moved();

  const at::Tensor view = x.view({2, 2}).t().expand({3, 2, 2});

  EXPECT_EQ(moved(), Moved());
  EXPECT_TRUE(view.is_alias_of(x));
}

TEST_F(OffloadTest, WhatIsOverwrittenDoesNotMove) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);
  moved();

  x.fill_(5);

  EXPECT_EQ(moved(), Moved());
  EXPECT_TRUE(x.cpu().equal(at::full({4}, 5.f)));
}

TEST_F(OffloadTest, WhatIsOverwrittenInPartMoves) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);

  x.narrow(0, 0, 2).fill_(5);

  EXPECT_TRUE(x.cpu().equal(at::tensor({5.f, 5.f, 3.f, 3.f})));
}

TEST_F(OffloadTest, AnOperatorThatRaisesLeavesWhatItShouldHaveOverwritten) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);

  EXPECT_THROW(x.uniform_(2, 1), c10::Error);

  EXPECT_TRUE(x.cpu().equal(at::full({4}, 3.f)));
}

TEST_F(OffloadTest, AnOperatorThatRaisesHalfwayLeavesWhatTheDeviceHas) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);
  x.sum();  // the host has the bytes, too

  EXPECT_THROW(x.bernoulli_(to_device(at::tensor({0.f, 0.f, 0.f, 2.f}))), c10::Error);

  EXPECT_TRUE(x.cpu().equal(at::full({4}, 3.f)));
}

TEST_F(OffloadTest, ACopyWithinAStorageIsTheHosts) {
  const at::Tensor x = to_device(at::ones({4}));
  fill_on_device(x, 3);

  EXPECT_THROW(x.narrow(0, 1, 3).copy_(x.narrow(0, 0, 3)), c10::Error);  // they overlap
}

TEST_F(OffloadTest, TheDeviceWritesWhenOperatorsOnTheHostHaveEnded) {
  const at::Tensor x = to_device(at::ones({4}));
  MirroredStorage& storage = *mirrored(x.storage());
  std::atomic<bool> ended{false};
  storage.begin_on_host(Access::kWrite, "test");

  std::thread window([&] {
    fill_on_device(x.narrow(0, 0, 2), 5);
    EXPECT_TRUE(ended);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ended = true;
  storage.end_on_host(/*wrote=*/true);
  window.join();

  EXPECT_TRUE(x.cpu().equal(at::tensor({5.f, 5.f, 1.f, 1.f})));
}

TEST_F(OffloadTest, AnOutArgumentTakesItsNewSize) {
  const at::Tensor x = to_device(at::ones({3}));
  at::Tensor out = to_device(at::empty({0}));

  at::add_out(out, x, x);
  address(out, Access::kRead);

  EXPECT_EQ(out.storage().nbytes(), 12);
  EXPECT_TRUE(out.cpu().equal(at::full({3}, 2.f)));
}

TEST_F(OffloadTest, AnArgumentThatIsReturnedIsThatArgument) {
  at::Tensor x = to_device(at::ones({3}));

  EXPECT_TRUE(x.add_(1).is_same(x));
  EXPECT_TRUE(at::relu_(x).is_same(x));
}

TEST_F(OffloadTest, CopiesOnTheDeviceMoveNothing) {
  const at::Tensor x = to_device(at::ones({4})), y = to_device(at::zeros({4}));
  fill_on_device(x, 3);
  moved();

  y.copy_(x);

  EXPECT_EQ(moved(), Moved());
  EXPECT_TRUE(y.cpu().equal(at::full({4}, 3.f)));
}

TEST_F(OffloadTest, AStorageThatIsResizedKeepsItsBytesWhereverTheyAre) {
  for (const bool on_device : {false, true}) {
    const at::Tensor x = to_device(at::ones({4}));
    if (on_device) fill_on_device(x, 1);

    mirrored(x.storage())->resize(32);

    EXPECT_EQ(x.storage().nbytes(), 32);
    EXPECT_TRUE(x.cpu().equal(at::ones({4})));
  }
}

TEST_F(OffloadTest, DroppedTensorsGiveMemoryBack) {
  const int64_t before = offload_memory().allocated;
  {
    const at::Tensor x = to_device(at::ones({4}));
    EXPECT_EQ(offload_memory().allocated, before + 16);
  }

  EXPECT_EQ(offload_memory().allocated, before);
}

TEST_F(OffloadTest, AnotherRuntimeIsRefused) {
  ProcessMemory other;

  try {
    register_runtime_device(other);
    FAIL() << "a second device was registered";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("has device 'offloaded' already"), std::string::npos);
  }
}

}  // namespace
}  // namespace torch_lazy
