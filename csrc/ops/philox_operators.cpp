#include "ops/philox_operators.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>

#include "base/immortal_library.h"
#include "ops/philox.h"

namespace torch_lazy {
namespace {

constexpr int64_t kGrain = 16384, kChunk = 1024;

// Elements [first, first + kChunk) of a stream, by the widest vectors that the machine has.
__attribute__((target_clones("avx512f", "avx2", "default"))) void fill_chunk(uint64_t key,
                                                                             uint64_t first,
                                                                             float* uniforms) {
  for (int64_t i = 0; i < kChunk; ++i) uniforms[i] = philox_uniform(key, first + uint64_t(i));
}

// Calls visit(first, uniforms, count) for chunks of a stream, on several threads.
template <typename Visit>
void for_each_chunk(uint64_t key, int64_t elements, const Visit& visit) {
  at::parallel_for(0, elements, kGrain, [&](int64_t begin, int64_t end) {
    float uniforms[kChunk];
    for (int64_t first = begin; first < end; first += kChunk) {
      const int64_t count = std::min(kChunk, end - first);
      fill_chunk(key, uint64_t(first), uniforms);
      visit(first, uniforms, count);
    }
  });
}

void fill_bernoulli(at::Tensor& dense, uint64_t key, float p) {
  AT_DISPATCH_ALL_TYPES_AND3(
      at::kBool, at::kHalf, at::kBFloat16, dense.scalar_type(), "philox_bernoulli_", [&] {
        auto* const data = dense.mutable_data_ptr<scalar_t>();
        for_each_chunk(key, dense.numel(), [=](int64_t first, const float* uniforms, int64_t n) {
          for (int64_t i = 0; i < n; ++i) data[first + i] = scalar_t(uniforms[i] < p);
        });
      });
}

at::Tensor& philox_bernoulli_(at::Tensor& self, const at::Tensor& key, double p) {
  const bool dense = self.is_contiguous();
  at::Tensor filled = dense ? self : at::empty_like(self, at::MemoryFormat::Contiguous);
  fill_bernoulli(filled, stream_of(key), float(p));
  if (!dense) self.copy_(filled);
  return self;
}

at::Tensor philox_bernoulli(const at::Tensor& self, const at::Tensor& key, double p) {
  at::Tensor result = at::empty_like(self);
  philox_bernoulli_(result, key, p);
  return result;
}

// Of every device that draws.
at::Tensor philox_mask(const at::Tensor& self, const at::Tensor& key, double p) {
  static const auto draw = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("torch_lazy::philox_bernoulli_", "")
                               .typed<at::Tensor&(at::Tensor&, const at::Tensor&, double)>();
  at::Tensor result = at::empty_like(self, self.options().dtype(at::kBool));
  return draw.call(result, key, p);
}

at::Tensor philox_uniform_at(const at::Tensor& position, const at::Tensor& key) {
  const uint64_t stream = stream_of(key);
  const at::Tensor dense = position.contiguous();
  at::Tensor result = at::empty_like(dense, dense.options().dtype(at::kFloat));
  const auto* const from = dense.const_data_ptr<int64_t>();
  auto* const to = result.mutable_data_ptr<float>();
  at::parallel_for(0, dense.numel(), kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = philox_uniform(stream, uint64_t(from[i]));
  });
  return result;
}

at::Tensor& meta_bernoulli_(at::Tensor& self, const at::Tensor&, double) {
  return self;
}
at::Tensor meta_bernoulli(const at::Tensor& self, const at::Tensor&, double) {
  return at::empty_like(self);
}
at::Tensor meta_mask(const at::Tensor& self, const at::Tensor&, double) {
  return at::empty_like(self, self.options().dtype(at::kBool));
}
at::Tensor meta_uniform(const at::Tensor& position, const at::Tensor&) {
  return at::empty_like(position, position.options().dtype(at::kFloat));
}

}  // namespace

uint64_t stream_of(const at::Tensor& key) {
  TORCH_CHECK(key.dim() == 0 && key.scalar_type() == at::kLong && key.device().is_cpu(),
              "the key of a random stream must be an int64 tensor without dimensions on the CPU, "
              "not one of dtype ",
              key.scalar_type(), " and sizes ", key.sizes(), " on ", key.device());
  return uint64_t(*key.const_data_ptr<int64_t>());
}

bool has_random_kernel(c10::ScalarType dtype) {
  constexpr c10::ScalarType kTypes[] = {at::kBool,  at::kByte,  at::kChar, at::kShort,
                                        at::kInt,   at::kLong,  at::kHalf, at::kBFloat16,
                                        at::kFloat, at::kDouble};
  return std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes);
}

void register_philox_operators() {
  torch::Library& definitions = immortal_library(torch::Library::DEF, "torch_lazy", std::nullopt);
  definitions.def("philox_bernoulli_(Tensor(a!) self, Tensor key, float p) -> Tensor(a!)");
  definitions.def("philox_bernoulli(Tensor self, Tensor key, float p) -> Tensor");
  definitions.def("philox_mask(Tensor self, Tensor key, float p) -> Tensor");
  definitions.def("philox_uniform(Tensor position, Tensor key) -> Tensor");

  torch::Library& cpu = immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CPU);
  cpu.impl("philox_bernoulli_", philox_bernoulli_);
  cpu.impl("philox_bernoulli", philox_bernoulli);
  cpu.impl("philox_uniform", philox_uniform_at);

  immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CompositeExplicitAutograd)
      .impl("philox_mask", philox_mask);

  torch::Library& meta =
      immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::Meta);
  meta.impl("philox_bernoulli_", meta_bernoulli_);
  meta.impl("philox_bernoulli", meta_bernoulli);
  meta.impl("philox_mask", meta_mask);
  meta.impl("philox_uniform", meta_uniform);
}

}  // namespace torch_lazy
