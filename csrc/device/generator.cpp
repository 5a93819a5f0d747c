#include "device/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include "backend/execution_device.h"

namespace torch_lazy {
namespace {

// Forwards to the generator that it owns a reference to. Its key set is empty, so a generator
// never decides where an operator goes: one of the device that is given to an operator of the CPU
// is refused by the CPU's kernel, with the error that CUDA's generators get there.
//
// Whoever draws locks the mutex of the inner generator, whoever asks for or sets the state from
// Python that of this one. So each method locks the inner one itself.
class LazyGenerator final : public c10::GeneratorImpl {
 public:
  LazyGenerator(at::Generator inner, c10::DeviceIndex index)
      : c10::GeneratorImpl(lazy_device(index), c10::DispatchKeySet()), inner_(std::move(inner)) {}

  void set_current_seed(uint64_t seed) override {
    const auto lock = lock_inner();
    inner_.set_current_seed(seed);
  }
  uint64_t current_seed() const override {
    const auto lock = lock_inner();
    return inner_.current_seed();
  }
  uint64_t seed() override {
    const auto lock = lock_inner();
    return inner_.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    const auto lock = lock_inner();
    inner_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto lock = lock_inner();
    return inner_.unsafeGetGeneratorImpl()->get_state();
  }
  // The CPU's generators have no offset. Pickling asks for one, and sets it again, on every device
  // but the CPU.
  uint64_t get_offset() const override {
    const auto lock = lock_inner();
    return inner_.device().is_cpu() ? 0 : inner_.get_offset();
  }
  void set_offset(uint64_t offset) override {
    const auto lock = lock_inner();
    if (!inner_.device().is_cpu()) return inner_.set_offset(offset);
    TORCH_CHECK(offset == 0, "a generator of device lazy has no offset, but was given ", offset,
                ": restore what get_state() returned with set_state()");
  }

  const at::Generator& inner() const { return inner_; }

 private:
  std::unique_lock<std::mutex> lock_inner() const {
    return std::unique_lock(inner_.unsafeGetGeneratorImpl()->mutex_);
  }
  LazyGenerator* clone_impl() const override {
    const auto lock = lock_inner();
    return new LazyGenerator(inner_.clone(), device().index());
  }

  at::Generator inner_;
};

// Null where the CPU's generators draw.
const at::AcceleratorHooksInterface* hooks_with_generators() {
  const ExecutionDevice& device = execution_device();
  if (device.is_cpu() || !device.has_generators) return nullptr;
  return &at::globalContext().getAcceleratorHooksInterface(device.type);
}

c10::DeviceIndex known_index(c10::DeviceIndex index) {
  return lazy_index(inner_device(lazy_device(index)));
}

}  // namespace

at::Generator make_lazy_generator(c10::DeviceIndex index) {
  const c10::DeviceIndex known = known_index(index);
  const auto* const hooks = hooks_with_generators();
  at::Generator inner = hooks ? hooks->getNewGenerator(known) : at::detail::createCPUGenerator();
  return at::make_generator<LazyGenerator>(std::move(inner), known);
}

at::Generator inner_default_generator(c10::DeviceIndex index) {
  const auto* const hooks = hooks_with_generators();
  return hooks ? hooks->getDefaultGenerator(index) : at::detail::getDefaultCPUGenerator();
}

at::Generator default_lazy_generator(c10::DeviceIndex index) {
  const c10::DeviceIndex known = known_index(index);
  return at::make_generator<LazyGenerator>(inner_default_generator(known), known);
}

at::Generator inner_generator(const at::Generator& generator) {
  const bool lazy = generator.defined() && generator.device().type() == c10::DeviceType::Lazy;
  return lazy ? generator.get<LazyGenerator>()->inner() : generator;
}

std::optional<at::Generator> inner_generator(const std::optional<at::Generator>& generator) {
  if (!generator) return std::nullopt;
  return inner_generator(*generator);
}

}  // namespace torch_lazy
