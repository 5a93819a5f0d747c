"""``torch._lazy.mark_step()`` in scripts written for PyTorch's own lazy tensors."""

from __future__ import annotations

import torch
import torch._lazy


def install() -> None:
    """Makes ``mark_step`` a flush."""
    from torch_lazy import sync

    torch._lazy.mark_step = sync.mark_step
