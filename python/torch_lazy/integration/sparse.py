"""``Tensor.new`` of a sparse tensor, which ``torch.optim.SparseAdam`` makes its steps with.

PyTorch's code for it lists the kinds of tensors it knows, and sparse ones of device ``lazy`` are
not among them.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

_new = torch.Tensor.new


@functools.wraps(_new)
def _sparse_new(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    if not (self.layout == torch.sparse_coo and self.device.type == "lazy"):
        return _new(self, *args, **kwargs)
    if not args or not isinstance(args[0], torch.Tensor):  # a size, as numbers or one torch.Size
        size = args[0] if args and isinstance(args[0], torch.Size) else args or (0,)
        return torch.sparse_coo_tensor(size=size, dtype=self.dtype, device=self.device)
    # As the method's own code, which does not ask to be told whether to look at them.
    checks = torch.sparse.check_sparse_tensor_invariants.is_enabled()
    return torch.sparse_coo_tensor(
        *args, dtype=self.dtype, device=self.device, check_invariants=checks, **kwargs
    )


def install() -> None:
    """Replaces ``Tensor.new``; call once."""
    torch.Tensor.new = _sparse_new  # type: ignore[method-assign]
