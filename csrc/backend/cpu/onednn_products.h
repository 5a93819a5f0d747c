// Matrix products by oneDNN, under names that stand in graphs where backend/cpu/choose_products put
// them. PyTorch's own products of floats call MKL, which has AVX-512 code for Intel's processors
// alone; on AMD's its AVX2 code runs, and oneDNN's AVX-512 code is faster.
//
//   torch_lazy::onednn_mm(self, mat2)            as aten::mm
//   torch_lazy::onednn_addmm(self, mat1, mat2)   as aten::addmm with alpha and beta 1
//
// Both call the operator of ATen where oneDNN is switched off (torch.backends.mkldnn.enabled) or
// has no AVX-512 code, for other dtypes and dimensions, whose errors are ATen's, and as long as the
// shape is not admitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace torch_lazy {

// Whether this machine is one where oneDNN multiplies faster.
bool onednn_multiplies_faster();

// What oneDNN makes code for: sizes, whether operands are transposed, a sum, and the threads.
struct ProductShape {
  int64_t rows, inner, columns;
  bool transposed[2];
  bool sum;
  int threads;
  bool operator==(const ProductShape& other) const = default;
};

// Which calls are oneDNN's. It makes code for each shape when it first sees it: about half a
// millisecond of the caller's time, and 0.8 MB that stay. So the first shapes of a process are
// admitted, for good, and none before products of its own have taken as long as the code of all
// that were seen before it: no step waits for much.
class ProductAdmission {
 public:
  static constexpr int64_t kMostShapes = 48;
  static constexpr int64_t kWorkOfCode = 24 << 20;  // multiplications in half a millisecond

  // Whether this call is oneDNN's.
  bool admit(const ProductShape& shape);

 private:
  struct Hash {
    size_t operator()(const ProductShape& shape) const;
  };
  std::unordered_map<ProductShape, int64_t, Hash> waiting_;  // multiplications still to be done
};

// Defines the operators and their CPU kernels. Once a process, before any is looked up.
void register_onednn_products();

}  // namespace torch_lazy
