#include "backend/cpu/onednn_products.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <c10/util/hash.h>
#include <torch/library.h>

#include "base/fork.h"
#include "base/immortal_library.h"
#include "base/metrics.h"

namespace at::native {
// result = beta * result + alpha * mat1 @ mat2. Exported by libtorch_cpu and declared in
// ATen/native/mkldnn/Matmul.h, which PyTorch does not install; weak, so that it is null where a
// PyTorch lacks it.
__attribute__((weak)) void mkldnn_matmul(const Tensor& mat1, const Tensor& mat2,
                                         const Tensor& result, float beta, float alpha);
}  // namespace at::native

namespace torch_lazy {
namespace {

// oneDNN is built in and makes code for AVX-512: what mkldnn_matmul demands for floats too.
bool onednn_multiplies() {
  static const bool multiplies = [] {
    if (!at::native::mkldnn_matmul || !at::hasMKLDNN()) return false;
    const auto supported =
        c10::Dispatcher::singleton().findSchema({"mkldnn::_is_mkldnn_bf16_supported", ""});
    return supported && supported->typed<bool()>().call();
  }();
  return multiplies;
}

bool is_for_onednn(const at::Tensor& a, const at::Tensor& b, bool sum) {
  if (!onednn_multiplies() || !at::globalContext().userEnabledMkldnn()) return false;
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0) || a.scalar_type() != at::kFloat ||
      b.scalar_type() != at::kFloat)
    return false;
  // It takes other layouts by copying them first.
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) return false;
  const ProductShape shape{a.size(0), a.size(1),
                           b.size(1), {!a.is_contiguous(), !b.is_contiguous()},
                           sum,       at::get_num_threads()};
  // Global, as oneDNN's own code is; never destroyed.
  static auto* const mutex = new ForkSafeMutex(LockOrder::kLeaf);
  static auto* const admission = new ProductAdmission;  // guarded by the mutex
  const std::lock_guard<std::mutex> lock(*mutex);
  return admission->admit(shape);
}

// What is in the result counts `beta` times.
at::Tensor multiply(const at::Tensor& a, const at::Tensor& b, at::Tensor result, float beta) {
  at::native::mkldnn_matmul(a, b, result, beta, /*alpha=*/1);
  increment(metrics().onednn_products);
  return result;
}

at::Tensor empty_product(const at::Tensor& a, const at::Tensor& b) {
  return at::detail::empty_cpu({a.size(0), b.size(1)}, at::kFloat);
}

at::Tensor onednn_mm(const at::Tensor& self, const at::Tensor& mat2) {
  if (!is_for_onednn(self, mat2, /*sum=*/false)) return at::mm(self, mat2);
  return multiply(self, mat2, empty_product(self, mat2), /*beta=*/0);
}

at::Tensor onednn_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2) {
  if (self.scalar_type() != at::kFloat || !is_for_onednn(mat1, mat2, /*sum=*/true))
    return at::addmm(self, mat1, mat2);
  return multiply(mat1, mat2, empty_product(mat1, mat2).copy_(self), /*beta=*/1);
}

}  // namespace

bool onednn_multiplies_faster() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bw") && at::hasMKL() &&
         onednn_multiplies();
#else
  return false;
#endif
}

size_t ProductAdmission::Hash::operator()(const ProductShape& shape) const {
  return c10::get_hash(shape.rows, shape.inner, shape.columns, shape.transposed[0],
                       shape.transposed[1], shape.sum, shape.threads);
}

bool ProductAdmission::admit(const ProductShape& shape) {
  auto found = waiting_.find(shape);
  if (found == waiting_.end()) {
    const auto shapes = int64_t(waiting_.size());
    if (shapes == kMostShapes) return false;
    found = waiting_.emplace(shape, (shapes + 1) * kWorkOfCode).first;
  }
  int64_t& left = found->second;
  if (left <= 0) return true;
  left -= shape.rows * shape.inner * shape.columns;
  return false;
}

void register_onednn_products() {
  torch::Library& definitions =
      immortal_library(torch::Library::FRAGMENT, "torch_lazy", std::nullopt);
  definitions.def("onednn_mm(Tensor self, Tensor mat2) -> Tensor");
  definitions.def("onednn_addmm(Tensor self, Tensor mat1, Tensor mat2) -> Tensor");

  torch::Library& cpu = immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CPU);
  cpu.impl("onednn_mm", onednn_mm);
  cpu.impl("onednn_addmm", onednn_addmm);
}

}  // namespace torch_lazy
