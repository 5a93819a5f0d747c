"""Numbers as devices, and ``pin_memory=True``, on machines without an accelerator.

To PyTorch a number means a device of the machine's accelerator, and it raises where there is none.
There a number means device ``lazy``: ``model.to(rank)``, ``torch.device(0)``,
``torch.zeros(3, device=0)``. Memory to pin is any memory there (``pinned_memory.py``).
"""

from __future__ import annotations

import torch

# What makes tensors and takes `device=`. `torch.nested` and what is written in Python call these.
_FACTORIES = [
    "arange",
    "as_tensor",
    "asarray",
    "bartlett_window",
    "blackman_window",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eye",
    "from_file",
    "full",
    "full_like",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
_BY_NAME_ONLY = -1


def install() -> None:
    """Lets PyTorch's functions be called so; one that is so already is left as it is."""
    from torch_lazy import _C

    _C.accept_numbers_in_constructor()
    _C.accept_device_numbers(torch._C.TensorBase.to, 0)
    _C.accept_device_numbers(torch._C._nn._parse_to, 0)  # of modules
    for name in _METHODS:
        _C.accept_device_numbers(getattr(torch._C.TensorBase, name), _BY_NAME_ONLY)
    for name in _FACTORIES:
        if hasattr(torch._C._VariableFunctions, name):
            _C.accept_device_numbers(getattr(torch._C._VariableFunctions, name), _BY_NAME_ONLY)
    for name in ("fft_fftfreq", "fft_rfftfreq"):
        _C.accept_device_numbers(getattr(torch._C._fft, name), _BY_NAME_ONLY)
