// Random numbers of the device. A draw that kernels can make themselves takes a key from PyTorch's
// generator at the call and is recorded as a function of that key (ops/philox_operators.h): the
// generator's state, and so torch.manual_seed, torch.get_rng_state and checkpointing, decide what
// is drawn, but what they decide does not depend on what ran in a window and what at the call. All
// other random operators run at the call, by ATen.
#include "device/random_operators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bernoulli_native.h>
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/native_dropout_native.h>
#include <ATen/ops/native_dropout_ops.h>

#include "base/config.h"
#include "device/generator.h"
#include "device/register.h"
#include "device/unboxed.h"
#include "ops/philox.h"
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
    static const auto op = handle().typed<schema>();
    return op.redispatch(keys, self, key, p);
  }
  // The device's own, or what it does with every operator that it has no kernel for.
  static bool has_kernel(c10::DispatchKey key) {
    return key == c10::DispatchKey::CPU || handle().hasKernelForDispatchKey(key) ||
           c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key);
  }

 private:
  static const c10::OperatorHandle& handle() {
    static const c10::OperatorHandle op =
        c10::Dispatcher::singleton().findSchemaOrThrow(name, overload_name);
    return op;
  }
};

// The same for masks of dropout: what is drawn is new, so that it can be made before the window is
// complete, where memory that is written in place is written at its end.
struct PhiloxMask {
  using schema = at::Tensor(const at::Tensor&, const at::Tensor&, double);
  static constexpr const char* name = "torch_lazy::philox_mask";
  static constexpr const char* overload_name = "";
  static at::Tensor redispatch(c10::DispatchKeySet keys, const at::Tensor& self,
                               const at::Tensor& key, double p) {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(name, overload_name).typed<schema>();
    return op.redispatch(keys, self, key, p);
  }
};

// What a generator of the CPU draws next. From another device's only its own kernels can draw: the
// bits are then those that its seed and its place in the sequence give, which moves on by 4, as
// PyTorch's kernels on CUDA move it.
uint64_t draw_bits(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  if (generator.device().is_cpu()) return generator.get<at::CPUGeneratorImpl>()->random64();
  const uint64_t seed = generator.current_seed(), offset = generator.get_offset();
  generator.set_offset(offset + 4);
  const auto [low, high] =
      Philox::block({uint32_t(offset), uint32_t(offset >> 32)}, uint32_t(seed));
  return (uint64_t(high) << 32 | low) ^ (seed >> 32 << 32);
}

at::Tensor draw_key(const at::Tensor& self, const std::optional<at::Generator>& generator) {
  const bool given = generator && generator->defined();
  at::Tensor key = at::detail::empty_cpu({}, at::kLong);
  *key.mutable_data_ptr<int64_t>() = int64_t(draw_bits(
      given ? inner_generator(*generator) : inner_default_generator(self.device().index())));
  return key;
}

// PyTorch's kernels refuse a generator of another device, with an error that says so.
bool can_draw_from(const at::Tensor& self, const std::optional<at::Generator>& generator) {
  if (!generator || !generator->defined()) return true;
  return inner_generator(*generator).device().type() ==
         inner_default_generator(self.device().index()).device().type();
}

bool draws_by_key(const at::Tensor& self, double p, const std::optional<at::Generator>& generator) {
  return draws_bernoulli_by_key() && lazy_impl(self) && p >= 0 && p <= 1 &&
         has_random_kernel(self.scalar_type()) && can_draw_from(self, generator);
}

at::Tensor& bernoulli_(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  if (!draws_by_key(self, p, generator))
    return Unboxed<at::_ops::bernoulli__float>::kernel(self, p, std::move(generator));
  return Unboxed<PhiloxBernoulli>::kernel(self, draw_key(self, generator), p);
}

// torch.func makes these two of dropouts. ATen composes them of operators, so that they draw what
// dropout draws elsewhere, and are recorded.
at::Tensor bernoulli(const at::Tensor& self, double p, std::optional<at::Generator> generator) {
  return draws_by_key(self, p, generator)
             ? at::native::bernoulli(self, p, std::move(generator))
             : Unboxed<at::_ops::bernoulli_p>::kernel(self, p, std::move(generator));
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
  if (!draws_bernoulli_by_key()) return Unboxed<at::_ops::native_dropout>::kernel(input, p, train);
  const double kept = 1 - p;
  if (!train.value_or(true) || input.numel() == 0 || !draws_by_key(input, kept, std::nullopt))
    return at::native::native_dropout_cpu(input, p, train);
  const at::Tensor mask = Unboxed<PhiloxMask>::kernel(input, draw_key(input, std::nullopt), kept);
  return {input.mul(mask).mul_(kept == 0 ? 0 : 1 / kept), mask};
}

}  // namespace

bool draws_bernoulli_by_key() {
  return config().rng == RandomNumbers::kPhilox &&
         PhiloxBernoulli::has_kernel(execution_device().key);
}

void register_random_kernels(torch::Library& library) {
  library.impl("bernoulli_.float", bernoulli_);
  library.impl("bernoulli.p", bernoulli);
  library.impl("native_dropout", native_dropout);
}

}  // namespace torch_lazy
