"""The device, with the habits of ``torch.cuda``."""

from __future__ import annotations

import torch


def is_available() -> bool:
    """Whether device ``lazy`` can be used."""
    from torch_lazy import loading

    return loading._loaded


def is_initialized() -> bool:
    """Same as :func:`is_available`: there is nothing to initialize later."""
    return is_available()


def device_count() -> int:
    """Number of devices of the execution backend; 1 on the CPU."""
    return 1


def current_device() -> int:
    """Index of the device that ``"lazy"`` without an index means."""
    return 0


def set_device(device: torch.device | int | str) -> None:
    """Selects a device; raises ``ValueError`` unless it is device 0, the only one."""
    index = device if isinstance(device, int) else torch.device(device).index or 0
    if index != 0:
        raise ValueError(f"there is no device lazy:{index}: device lazy has 1 device, lazy:0")


def get_device_name(device: torch.device | int | str | None = None) -> str:
    """Name of the execution backend behind the device, and of the processor that it runs on."""
    set_device(device if device is not None else 0)
    from torch_lazy import _C

    return f"{_C.get_setting('backend')} ({_C.device_name()})"


def _is_in_bad_fork() -> bool:
    return False
