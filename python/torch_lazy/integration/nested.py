"""Nested tensors on device ``lazy`` in their default layout, which are refused.

PyTorch lets only storages of devices that it lists into strided nested tensors, and where the parts
come from the CPU nothing of this device runs before its assertion.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def _refuse(module: Any, name: str, called: str) -> None:
    """Where another version of PyTorch has no such function nothing is changed."""
    make = getattr(module, name, None)
    if make is None:
        return

    @functools.wraps(make)
    def refusing(*args: Any, **kwargs: Any) -> torch.Tensor:
        named = [d for d in (kwargs.get("device"), *args) if isinstance(d, torch.device | str)]
        if any(torch.device(device).type == "lazy" for device in named):
            raise NotImplementedError(
                f"{called} cannot make a strided nested tensor on device lazy: "
                "use layout=torch.jagged, or device='cpu'"
            )
        return make(*args, **kwargs)

    setattr(module, name, refusing)


def install() -> None:
    """Wraps what ``nested_tensor`` and ``as_nested_tensor`` call."""
    _refuse(torch._C._nested, "nested_tensor", "torch.nested.nested_tensor")
    _refuse(torch, "_nested_tensor_from_tensor_list", "torch.nested.as_nested_tensor")
