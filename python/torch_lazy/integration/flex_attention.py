"""``flex_attention`` on lazy tensors.

It has a list of devices. Without ``torch.compile`` it computes by PyTorch's own operators, which
this device has, with their gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from torch_lazy.integration.at_import import when_imported_wrap


def install() -> None:
    """Takes lazy tensors out of the check of devices, now or when the module is imported."""
    when_imported_wrap(
        "torch.nn.attention.flex_attention", "_validate_device", _without_lazy_tensors
    )


def _without_lazy_tensors(check: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(check)
    def validate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != "lazy":
            check(query, key, value)

    return validate
