"""``torch.Generator(device="lazy")``."""

from __future__ import annotations


def install() -> None:
    """Makes PyTorch's constructor of generators know device ``lazy``."""
    from torch_lazy import _C

    _C.install_generator()
