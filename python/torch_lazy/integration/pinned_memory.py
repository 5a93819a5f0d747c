"""``Tensor.pin_memory()`` and ``DataLoader(pin_memory=True)`` on machines without an accelerator.

Pinned memory is memory of the CPU that another processor reads by itself. Device ``lazy`` reads all
memory of the CPU, so there is nothing to pin; but scripts pin what they send to a device, and
PyTorch raises or warns where it finds none. With an accelerator everything is as PyTorch has it,
and memory that is pinned for ``"lazy"`` is pinned for that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import dataloader

from torch_lazy.integration.accelerator import machines_accelerator

_pin_memory = torch.Tensor.pin_memory
_is_pinned = torch.Tensor.is_pinned


def _names_lazy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the device that a call names, if it names one, is ``lazy``."""
    device = args[0] if args else kwargs.get("device")
    return device is not None and torch.device(device).type == "lazy"


@functools.wraps(_pin_memory)
def _tensor_pin_memory(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    if self.device.type == "lazy":
        raise RuntimeError(
            f"cannot pin '{self.type()}' only dense CPU tensors can be pinned: device lazy has no "
            "pinned memory, send the tensor as it is"
        )
    if _names_lazy(args, kwargs):
        args, kwargs = (), {}
    if self.device.type != "cpu" or self.layout != torch.strided or machines_accelerator():
        return _pin_memory(self, *args, **kwargs)
    # A copy, as in pinned memory: whoever writes to it does not write to the original.
    return self.clone()


@functools.wraps(_is_pinned)
def _tensor_is_pinned(self: torch.Tensor, *args: Any, **kwargs: Any) -> bool:
    if _names_lazy(args, kwargs):
        return _is_pinned(self)
    return _is_pinned(self, *args, **kwargs)


def _without_pinning(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, loader: Any) -> None:
        if not loader.pin_memory or machines_accelerator():
            return original(self, loader)
        pin_memory_device = loader.pin_memory_device
        loader.pin_memory, loader.pin_memory_device = False, ""
        try:
            original(self, loader)
        finally:
            loader.pin_memory, loader.pin_memory_device = True, pin_memory_device
        return None

    return __init__


def install() -> None:
    """Wraps what pins tensors, asks whether they are, and iterates over a ``DataLoader``."""
    torch.Tensor.pin_memory = _tensor_pin_memory  # type: ignore[method-assign]
    torch.Tensor.is_pinned = _tensor_is_pinned  # type: ignore[method-assign]
    iterator = dataloader._BaseDataLoaderIter
    iterator.__init__ = _without_pinning(iterator.__init__)  # type: ignore[method-assign]
