"""``flex_attention`` on lazy tensors.

It has a list of devices. Without ``torch.compile`` it computes by PyTorch's own operators, which
this device has, with their gradients.
"""

from __future__ import annotations

import functools
from types import ModuleType

import torch

from torch_lazy.integration.at_import import when_imported


def install() -> None:
    """Takes lazy tensors out of the check of devices, now or when the module is imported."""
    when_imported("torch.nn.attention.flex_attention", _take_lazy_tensors)


def _take_lazy_tensors(module: ModuleType) -> None:
    """Where another version of PyTorch checks in another way nothing is changed."""
    check = getattr(module, "_validate_device", None)
    if check is None:
        return

    @functools.wraps(check)
    def validate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != "lazy":
            check(query, key, value)

    module._validate_device = validate
