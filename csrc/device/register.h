// What device/ registers with PyTorch. Called once, when the extension module is loaded.
#pragma once

#include <torch/library.h>

#include "base/api.h"

namespace torch_lazy {

void register_guard();
// The kernels of all operators: typed ones, the boxed fallback, and the boxed one by name for those
// that should stay whole though PyTorch could decompose them.
void register_operators();

// Operators by kind, which need more than the kernels that all operators have; each function fills
// in kernels for dispatch key Lazy of namespace aten.
void register_copies(torch::Library& library);
void register_empty_operators(torch::Library& library);
void register_storage_operators(torch::Library& library);
void register_random_kernels(torch::Library& library);
void register_sync_batch_norm(torch::Library& library);
void register_histogram(torch::Library& library);
void register_streams(torch::Library& library);
// Kernels for dispatch key AutogradLazy, of views.
void register_view_autograd(torch::Library& library);
// Composite operators that decompose by device: they must choose what eager chooses on the CPU.
void register_composites();
// Attention by the kernels of the device that lazy tensors live on.
void register_attention();
void register_group_norm(torch::Library& library);
void register_recurrent_modules();
// Operators of torch.distributed, and what DistributedDataParallel asks of a device.
void register_collectives();
void register_data_parallel_timer();

// Tensors of the device that are not plain strided ones.
void register_sparse_operators();
void register_quantized_operators();
void register_nested_operators();
// The rest of their kernels, for hundreds of operators: called when the first one is made, since
// few programs make any.
void register_kernels_of_quantized_tensors();
void register_kernels_of_nested_tensors();

TORCH_LAZY_MODULE_API void register_device();

}  // namespace torch_lazy
