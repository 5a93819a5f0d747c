"""Sharing memory with other libraries."""

from __future__ import annotations

from typing import Any

import torch


def from_dlpack(external: Any) -> torch.Tensor:
    """A lazy tensor on the memory of a CPU array that speaks DLPack (NumPy, PyTorch, JAX, ...).

    The memory is shared, not copied; operations on it run at the call.
    """
    from torch_lazy import _C

    tensor = torch.utils.dlpack.from_dlpack(external)
    return tensor if tensor.device.type == "lazy" else _C.import_inner(tensor)
