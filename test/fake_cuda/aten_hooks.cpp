// What PyTorch asks of CUDA where it cannot know whether there is one: hooks, and generators.

#include "fake_cuda/aten_hooks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/library.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "fake_cuda/aten_driver.h"
#include "fake_cuda/aten_memory.h"

namespace torch_lazy::fake_cuda {
namespace {

// A generator of type CUDA that draws as the one of the CPU that it holds, and has the offset
// besides that CUDA's have, for who draws by seed and offset.
//
// Who draws locks the mutex of the generator that it holds; so do its methods.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(at::Generator host)
      : c10::GeneratorImpl(checked_device(0), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        host_(std::move(host)) {}

  const at::Generator& host() const { return host_; }

  void set_current_seed(uint64_t seed) override {
    const auto lock = lock_host();
    host_.set_current_seed(seed);
    offset_ = 0;
  }
  uint64_t current_seed() const override {
    const auto lock = lock_host();
    return host_.current_seed();
  }
  uint64_t seed() override {
    const auto lock = lock_host();
    offset_ = 0;
    return host_.seed();
  }
  void set_offset(uint64_t offset) override {
    const auto lock = lock_host();
    offset_ = offset;
  }
  uint64_t get_offset() const override {
    const auto lock = lock_host();
    return offset_;
  }
  // The host's state, and behind it the offset, once there is one: who draws nothing by it sees the
  // states of the CPU's generators.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto lock = lock_host();
    const at::Tensor inner = host_.get_state();
    if (offset_ == 0) return inner.getIntrusivePtr();
    const at::Tensor state = at::detail::empty_cpu({inner.numel() + kOffsetBytes}, at::kByte);
    auto* const to = state.mutable_data_ptr<uint8_t>();
    std::memcpy(to, inner.const_data_ptr<uint8_t>(), size_t(inner.numel()));
    std::memcpy(to + inner.numel(), &offset_, sizeof offset_);
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    const auto lock = lock_host();
    const int64_t inner_bytes = host_.get_state().numel();
    const bool has_offset = state.numel() == inner_bytes + kOffsetBytes;
    TORCH_CHECK(has_offset || state.numel() == inner_bytes, "RNG state is wrong size");
    const at::Tensor inner = at::detail::empty_cpu({inner_bytes}, at::kByte);
    const auto* const from = static_cast<const uint8_t*>(state.data());
    std::memcpy(inner.mutable_data_ptr<uint8_t>(), from, size_t(inner_bytes));
    host_.set_state(inner);
    offset_ = 0;
    if (has_offset) std::memcpy(&offset_, from + inner_bytes, sizeof offset_);
  }

 private:
  static constexpr int64_t kOffsetBytes = sizeof(uint64_t);

  std::unique_lock<std::mutex> lock_host() const {
    return std::unique_lock(host_.unsafeGetGeneratorImpl()->mutex_);
  }
  Generator* clone_impl() const override {
    const auto lock = lock_host();
    auto copy = std::make_unique<Generator>(host_.clone());
    copy->offset_ = offset_;
    return copy.release();
  }

  at::Generator host_;
  uint64_t offset_ = 0;
};

struct Hooks final : at::CUDAHooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void init() const override { ensure_context(); }

  c10::DeviceIndex deviceCount() const override { return 1; }
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex device) const override { checked_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return checked_device(device).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  void deviceSynchronize(c10::DeviceIndex) const override {
    ensure_context();
    check(cuCtxSynchronize());
  }

  // Where a test brings a kernel that PyTorch calls if it has cuDNN.
  bool compiledWithCuDNN() const override {
    static const auto rnn = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_cudnn_rnn", "");
    return rnn.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }
  c10::Allocator* getCUDADeviceAllocator() const override { return &device_allocator(); }
  c10::Device getDeviceFromPtr(void*) const override { return checked_device(0); }

  // Shares the state of the CPU's, so that numbers are those of eager on the CPU whatever draws
  // them: kernels that are given no generator draw from that one.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    checked_device(device);
    static const at::Generator shared =
        at::make_generator<Generator>(at::detail::getDefaultCPUGenerator());
    return shared;
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    checked_device(device);
    return at::make_generator<Generator>(at::detail::createCPUGenerator());
  }
};

// PyTorch asks for the hooks once, while it is imported, and keeps the object that it got where
// there were none. That has no members, so it can become one of another type where it is.
const bool hooks_registered = [] {
  static_assert(sizeof(Hooks) == sizeof(at::CUDAHooksInterface));
  std::construct_at(
      static_cast<Hooks*>(const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks())));
  return true;
}();

// For Python, as torch.ops.fake_cuda.
TORCH_LIBRARY(fake_cuda, library) {
  library.def("default_generator() -> Generator?",
              [] { return at::detail::getCUDAHooks().getDefaultGenerator(0); });
}

}  // namespace

at::Generator generator_on_host(const at::Generator& generator) {
  if (!generator.defined() || generator.device().type() != c10::kCUDA) return generator;
  return generator.get<Generator>()->host();
}

}  // namespace torch_lazy::fake_cuda
