"""``__cuda_array_interface__``: CuPy, Numba and others see memory of lazy tensors that is CUDA's.

As with an address (``tensor.py``), pending work runs first, and operations on the tensor run at the
call from then on, though whoever asks may only want to know whether there is such a thing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import has_torch_function_unary

from torch_lazy.integration.tensor import is_wrapper

_interface = torch.Tensor.__cuda_array_interface__.fget  # type: ignore[attr-defined]


def _lazy_interface(self: torch.Tensor) -> dict[str, Any]:
    if has_torch_function_unary(self) or self.device.type != "lazy":
        return _interface(self)
    if self.layout != torch.strided or self.is_nested or is_wrapper(self):
        return _interface(self)
    from torch_lazy import _C

    # Asking a tensor whose memory is the host's is no reason to run or to export anything.
    if _C.execution_device() != "cuda":
        return _interface(self)
    if self.requires_grad:  # raises as PyTorch does, before anything is exported
        return _interface(torch.empty(0, device="cuda", requires_grad=True))
    return _interface(_C.export_inner(self))


def install() -> None:
    """Replaces the property of ``torch.Tensor``."""
    torch.Tensor.__cuda_array_interface__ = property(  # type: ignore[assignment]
        _lazy_interface, doc=_interface.__doc__
    )
