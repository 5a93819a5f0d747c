#include "backend/cpu/onednn_products.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include <chrono>
#include <optional>

#include "backend/cpu/product_choice.h"
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

// Of a matrix, or of each of a batch: whether its columns lie one after the other and not its rows.
// None for other layouts, of which oneDNN would make copies first.
std::optional<bool> is_transposed(const at::Tensor& matrices) {
  if (matrices.is_contiguous()) return false;
  const int64_t rows = matrices.size(-2), columns = matrices.size(-1);
  if (matrices.stride(-2) != 1 || matrices.stride(-1) != rows) return std::nullopt;
  if (matrices.dim() == 3 && matrices.stride(0) != rows * columns) return std::nullopt;
  return true;
}

// Of matrices, or of batches of them, with so many dimensions. None: what oneDNN is not to compute.
std::optional<ProductShape> shape_of(const at::Tensor& a, const at::Tensor& b, int64_t dims,
                                     bool sum) {
  if (!onednn_multiplies() || !at::globalContext().userEnabledMkldnn()) return std::nullopt;
  if (a.scalar_type() != at::kFloat || b.scalar_type() != at::kFloat) return std::nullopt;
  if (a.dim() != dims || b.dim() != dims || a.size(-1) != b.size(-2)) return std::nullopt;
  const int64_t batch = dims == 3 ? a.size(0) : 0;
  if (dims == 3 && b.size(0) != batch) return std::nullopt;
  const std::optional<bool> a_transposed = is_transposed(a), b_transposed = is_transposed(b);
  if (!a_transposed || !b_transposed) return std::nullopt;
  return ProductShape{
      batch, a.size(-2),           a.size(-1), b.size(-1), {*a_transposed, *b_transposed},
      sum,   at::get_num_threads()};
}

// Global, as oneDNN's own code is.
class SharedChoice {
 public:
  ProductChoice::Call next(const ProductShape& shape) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return choice_.next(shape);
  }
  void took(const ProductChoice::Call& call, int64_t nanoseconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    choice_.took(call, nanoseconds);
  }

 private:
  ForkSafeMutex mutex_{LockOrder::kLeaf};
  ProductChoice choice_;  // guarded by the mutex
};

// Never destroyed: threads may outlive statics.
SharedChoice& shared_choice() {
  static auto* const choice = new SharedChoice;
  return *choice;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] SharedChoice& shared_choice_made_at_load = shared_choice();

thread_local int64_t on_trial = 0;  // calls of this thread

// The product by oneDNN or by `aten`, whoever is chosen for its shape. `prepare` makes the result,
// of which what is there counts `beta` times.
template <typename Aten, typename Prepare>
at::Tensor product_by_choice(const at::Tensor& a, const at::Tensor& b, int64_t dims, float beta,
                             const Aten& aten, const Prepare& prepare) {
  const std::optional<ProductShape> shape = shape_of(a, b, dims, /*sum=*/beta != 0);
  if (!shape) return aten();
  const ProductChoice::Call call = shared_choice().next(*shape);
  if (!call.is_settled) ++on_trial;
  const auto begin = std::chrono::steady_clock::now();
  at::Tensor result;
  if (call.onednn) {
    result = prepare();
    at::native::mkldnn_matmul(a, b, result, beta, /*alpha=*/1);
    increment(metrics().onednn_products);
  } else {
    result = aten();
  }
  if (call.timed_for) {
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
    shared_choice().took(call, time.count());
  }
  return result;
}

at::Tensor onednn_mm(const at::Tensor& self, const at::Tensor& mat2) {
  return product_by_choice(
      self, mat2, /*dims=*/2, /*beta=*/0, [&] { return at::mm(self, mat2); },
      [&] {
        return at::detail::empty_cpu({self.size(0), mat2.size(1)}, at::kFloat);
      });
}

at::Tensor onednn_bmm(const at::Tensor& self, const at::Tensor& mat2) {
  return product_by_choice(
      self, mat2, /*dims=*/3, /*beta=*/0, [&] { return at::bmm(self, mat2); },
      [&] {
        return at::detail::empty_cpu({self.size(0), self.size(1), mat2.size(2)}, at::kFloat);
      });
}

at::Tensor onednn_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2) {
  const auto aten = [&] { return at::addmm(self, mat1, mat2); };
  if (self.scalar_type() != at::kFloat) return aten();
  return product_by_choice(mat1, mat2, /*dims=*/2, /*beta=*/1, aten, [&] {
    const at::Tensor sum = at::detail::empty_cpu({mat1.size(0), mat2.size(1)}, at::kFloat);
    return sum.copy_(self);
  });
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

int64_t products_on_trial() {
  return on_trial;
}

void register_onednn_products() {
  torch::Library& definitions =
      immortal_library(torch::Library::FRAGMENT, "torch_lazy", std::nullopt);
  definitions.def("onednn_mm(Tensor self, Tensor mat2) -> Tensor");
  definitions.def("onednn_bmm(Tensor self, Tensor mat2) -> Tensor");
  definitions.def("onednn_addmm(Tensor self, Tensor mat1, Tensor mat2) -> Tensor");

  torch::Library& cpu = immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CPU);
  cpu.impl("onednn_mm", onednn_mm);
  cpu.impl("onednn_bmm", onednn_bmm);
  cpu.impl("onednn_addmm", onednn_addmm);
}

}  // namespace torch_lazy
