"""``torch.autocast("lazy")``.

PyTorch keeps autocast's state by device type and knows no type ``lazy``. Here it is kept under a
type that nothing else uses, whose key every lazy tensor carries.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

_CARRIER = "ipu"
_thread = threading.local()


def _start_with_the_devices_dtype() -> None:
    """The state belongs to a thread, where the carrier's dtype begins as float16.

    The dtype asked for is that of the device whose casts are made: bfloat16 on the CPU. It is set
    anew where lazy tensors have come to live on another one.
    """
    from torch_lazy import _C

    device = _C.autocast_device()
    if getattr(_thread, "device", None) != device:
        _thread.device = device
        torch._C.set_autocast_dtype(_CARRIER, torch._C.get_autocast_dtype(device))


def _is_lazy(device_type: Any) -> bool:
    """An index may be part of it, as PyTorch's functions for other devices take one."""
    return isinstance(device_type, str) and device_type.partition(":")[0] == "lazy"


def _for_lazy(function: Callable[..., Any], *, chooses: bool) -> Callable[..., Any]:
    """The function, which takes ``"lazy"`` too; ``chooses`` where it depends on the device."""

    @functools.wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        if args and _is_lazy(args[0]):
            args = (_CARRIER, *args[1:])
        elif _is_lazy(kwargs.get("device_type")):
            kwargs["device_type"] = _CARRIER
        else:
            return function(*args, **kwargs)
        if chooses:
            _start_with_the_devices_dtype()
        return function(*args, **kwargs)

    return translated


def _with_our_cache(clear: Callable[[], None]) -> Callable[[], None]:
    from torch_lazy import _C

    @functools.wraps(clear)
    def clear_both() -> None:
        clear()
        _C.clear_autocast_cache()

    return clear_both


def install() -> None:
    """Makes PyTorch's functions for autocast's state know device type ``lazy``."""
    available = _for_lazy(torch._C._is_autocast_available, chooses=False)
    torch._C._is_autocast_available = available
    torch.is_autocast_enabled = _for_lazy(torch.is_autocast_enabled, chooses=False)
    for name in ("set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype"):
        setattr(torch, name, _for_lazy(getattr(torch, name), chooses=True))
    torch.clear_autocast_cache = _with_our_cache(torch.clear_autocast_cache)
