// Whether the machine has an accelerator that PyTorch was built for.
#pragma once

namespace torch_lazy {

// PyTorch names the accelerator that it was built for on any machine: the one for CUDA, which most
// people install, on those without a GPU, too, where it then raises. Nothing is initialized to find
// out, since a process may fork after it was asked. Any thread.
bool has_accelerator();

}  // namespace torch_lazy
