"""``torch.accelerator`` as device ``lazy``, where the user asks for it.

It stays the machine's own accelerator where there is one. Where there is none, and
``torch.lazy.config.accelerator`` is set, it is device ``lazy``: scripts that are written for any
accelerator then find this one. The functions of ``torch.accelerator`` are a few lines of Python
over those that are replaced here, which look at the setting whenever they are called. So are parts
of ``torch.distributed`` that take the machine's accelerator or the CPU, such as ``fully_shard``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_lazy import _C

_pytorchs_accelerator = torch._C._accelerator_getAccelerator


def machines_accelerator() -> torch.device | None:
    """The machine's own, whatever ``torch.accelerator`` is made to mean.

    There is none where PyTorch was built for one that the machine has not.
    """
    return _pytorchs_accelerator() if _C.machine_has_accelerator() else None


def _chosen() -> bool:
    from torch_lazy.config import config

    return config.accelerator and machines_accelerator() is None


def _lazy() -> ModuleType:
    import torch_lazy

    return torch_lazy


def _accelerator() -> torch.device | None:
    return torch.device("lazy") if _chosen() else _pytorchs_accelerator()


def _device_stats(index: int) -> dict[str, Any]:
    """The statistics in the form that PyTorch flattens to ``allocated_bytes.all.current``."""
    stats: dict[str, Any] = {}
    for name, value in _lazy().memory_stats(index).items():
        if ".all." in name:
            kind, _, when = name.split(".")
            stats.setdefault(kind, {}).setdefault("all", {})[when] = value
        elif "." not in name:
            stats[name] = value
    return stats


def _device_capability(index: int) -> dict[str, Any]:
    from torch_lazy.device import check_device

    check_device(index)
    return {"supported_dtypes": {kind for kind in vars(torch).values() if _is_plain(kind)}}


def _is_plain(kind: object) -> bool:
    return isinstance(kind, torch.dtype) and not str(kind).startswith(("torch.q", "torch.bits"))


def _set_device(index: int) -> None:
    if index >= 0:
        _lazy().set_device(index)


def _exchange_device(index: int) -> int:
    before = _lazy().current_device()
    _set_device(index)
    return before


def _synchronize(index: int) -> None:
    _lazy().synchronize(index)


_EMPTY_HOST_CACHE = "_accelerator_emptyHostCache"  # not in torch 2.11

_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "_get_accelerator": lambda check=False: torch.device("lazy"),  # elsewhere the CPU without one
    "_accelerator_getDeviceIndex": lambda: _lazy().current_device(),
    "_accelerator_setDeviceIndex": _set_device,
    "_accelerator_exchangeDevice": _exchange_device,
    "_accelerator_maybeExchangeDevice": _exchange_device,
    "_accelerator_getDeviceCapability": _device_capability,
    "_accelerator_getStream": lambda index: _lazy().current_stream(index),
    "_accelerator_setStream": lambda stream: _lazy().set_stream(stream),
    "_accelerator_synchronizeDevice": _synchronize,
    "_accelerator_isAllocatorInitialized": lambda: True,
    "_accelerator_emptyCache": lambda: _lazy().empty_cache(),
    _EMPTY_HOST_CACHE: lambda: None,
    "_accelerator_getDeviceStats": _device_stats,
    "_accelerator_resetAccumulatedStats": lambda index: _lazy().reset_accumulated_memory_stats(
        index
    ),
    "_accelerator_resetPeakStats": lambda index: _lazy().reset_peak_memory_stats(index),
    "_accelerator_getMemoryInfo": lambda index: _lazy().mem_get_info(index),
}


def _unless_chosen(
    original: Callable[..., Any], replacement: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(*args: Any) -> Any:
        return replacement(*args) if _chosen() else original(*args)

    return function


def install() -> None:
    """Makes the functions behind ``torch.accelerator`` look at the setting; call once."""
    torch._C._accelerator_getAccelerator = _accelerator
    for name, replacement in _REPLACEMENTS.items():
        if name == _EMPTY_HOST_CACHE and not hasattr(torch._C, name):
            continue
        setattr(torch._C, name, _unless_chosen(getattr(torch._C, name), replacement))
