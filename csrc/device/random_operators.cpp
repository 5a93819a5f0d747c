// Random numbers of the device. A draw that kernels can make themselves takes a key from PyTorch's
// generator at the call and is recorded as a function of that key (ops/philox_operators.h): the
// generator's state, and so torch.manual_seed, torch.get_rng_state and checkpointing, decide what
// is drawn, but what they decide does not depend on what ran in a window and what at the call. All
// other random operators run at the call, by ATen.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bernoulli_ops.h>

#include "base/config.h"
#include "device/generator.h"
#include "device/register.h"
#include "device/unboxed.h"
#include "ops/philox_operators.h"

namespace torch_lazy {
namespace {

// As a struct of at::_ops.
struct PhiloxBernoulli {
  using schema = at::Tensor&(at::Tensor&, const at::Tensor&, double);
  static constexpr const char* name = "torch_lazy::philox_bernoulli_";
  static constexpr const char* overload_name = "";
  static at::Tensor& redispatch(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& key,
                                double p) {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(name, overload_name).typed<schema>();
    return op.redispatch(keys, self, key, p);
  }
};

at::Tensor draw_key(const std::optional<at::Generator>& generator) {
  auto* const source = at::get_generator_or_default<at::CPUGeneratorImpl>(
      inner_generator(generator), at::detail::getDefaultCPUGenerator());
  at::Tensor key = at::detail::empty_cpu({}, at::kLong);
  const std::lock_guard<std::mutex> lock(source->mutex_);
  *key.mutable_data_ptr<int64_t>() = int64_t(source->random64());
  return key;
}

bool draws_by_key(const at::Tensor& self, double p, const std::optional<at::Generator>& generator) {
  return config().rng == RandomNumbers::kPhilox && execution_device().is_cpu() && lazy_impl(self) &&
         p >= 0 && p <= 1 && has_random_kernel(self.scalar_type()) &&
         (!generator || !generator->defined() || inner_generator(*generator).device().is_cpu());
}

at::Tensor& bernoulli_(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  if (!draws_by_key(self, p, generator))
    return Unboxed<at::_ops::bernoulli__float>::kernel(self, p, std::move(generator));
  return Unboxed<PhiloxBernoulli>::kernel(self, draw_key(generator), p);
}

}  // namespace

void register_random_kernels(torch::Library& library) {
  library.impl("bernoulli_.float", bernoulli_);
}

}  // namespace torch_lazy
