// Matrix products by oneDNN where it is faster, under names that stand in graphs where
// backend/cpu/choose_products put them. PyTorch's own products of floats call MKL, which has
// AVX-512 code for Intel's processors alone; on AMD's its AVX2 code runs, and oneDNN's AVX-512 code
// is up to twice as fast.
//
//   torch_lazy::onednn_mm(self, mat2)            as aten::mm
//   torch_lazy::onednn_bmm(self, mat2)           as aten::bmm
//   torch_lazy::onednn_addmm(self, mat1, mat2)   as aten::addmm with alpha and beta 1
//
// They are ATen's where oneDNN is switched off (torch.backends.mkldnn.enabled) or has no AVX-512
// code, for other dtypes and layouts, and else for the shapes for which backend/cpu/product_choice
// says so. Errors are ATen's.
#pragma once

#include <cstdint>

namespace torch_lazy {

// Whether this machine is one where oneDNN may multiply faster.
bool onednn_multiplies_faster();

// How many calls of the operators there were on this thread while it was open who computes them.
int64_t products_on_trial();

// Defines the operators and their CPU kernels. Once a process, before any is looked up.
void register_onednn_products();

}  // namespace torch_lazy
