"""``torch.nested.nested_tensor(..., device="lazy")`` in its default layout, which is refused.

PyTorch lets storages of listed devices only into strided nested tensors, and where the parts come
from the CPU nothing of this device runs before its assertion.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def install() -> None:
    """Where another version of PyTorch makes them in another way nothing is changed."""
    module = torch._C._nested
    make = getattr(module, "nested_tensor", None)
    if make is None:
        return

    @functools.wraps(make)
    def nested_tensor(*args: Any, **kwargs: Any) -> torch.Tensor:
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "lazy":
            raise NotImplementedError(
                "torch.nested.nested_tensor cannot make a strided nested tensor on device lazy: "
                "use layout=torch.jagged, or device='cpu'"
            )
        return make(*args, **kwargs)

    module.nested_tensor = nested_tensor
