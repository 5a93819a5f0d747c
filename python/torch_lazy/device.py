"""The device, with the habits of ``torch.cuda``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

Device = torch.device | int | str | None
"""How functions of ``torch.lazy`` are told a device; ``None`` is the current one."""


def is_available() -> bool:
    """Whether device ``lazy`` can be used."""
    from torch_lazy import loading

    return loading._loaded


def is_initialized() -> bool:
    """Same as :func:`is_available`: there is nothing to initialize later."""
    return is_available()


def init() -> None:
    """Does nothing: the device is ready when the plugin is loaded."""


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


def check_device(device: Device) -> None:
    """Raises ``ValueError`` unless it is ``None`` or names the device of this module."""
    if device is None:
        return
    if not isinstance(device, int) and torch.device(device).type != "lazy":
        raise ValueError(f"expected a lazy device, but got {device}")
    set_device(device)


class device:
    """Context in which a device is the current one; there is one, so nothing changes.

    ``None`` and a negative index are accepted, as ``torch.cuda.device`` does.
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1 if isinstance(device, int) and device < 0 else 0
        if self.idx == 0:
            check_device(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> bool:
        return False


class device_of(device):
    """Context in which the device of a tensor is the current one; of one elsewhere, no change."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_lazy", False) else -1)


def get_device_name(device: Device = None) -> str:
    """Name of the execution backend behind the device, and of the processor that it runs on."""
    check_device(device)
    from torch_lazy import _C

    return f"{_C.get_setting('backend')} ({_C.device_name()})"


@dataclass(frozen=True)
class DeviceProperties:
    """What :func:`get_device_properties` tells."""

    name: str
    """Of :func:`get_device_name`."""
    major: int
    minor: int
    """Of :func:`get_device_capability`."""
    total_memory: int
    """Bytes of memory of the machine."""
    multi_processor_count: int
    """Processors that this process may run on."""
    is_integrated: bool = True
    """The device's memory is the CPU's."""


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, memory and processors of the device."""
    major, minor = get_device_capability(device)
    return DeviceProperties(
        name=get_device_name(device),
        major=major,
        minor=minor,
        total_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        multi_processor_count=len(os.sched_getaffinity(0)),
    )


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """``(0, 0)``: the device has none of the features that CUDA numbers.

    Scripts that choose kernels by this number then take the way that every device can go.
    """
    check_device(device)
    return (0, 0)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: operators compute in bfloat16, as on the CPU."""
    return True


def is_tf32_supported() -> bool:
    """False: products of floats are computed in float."""
    return False


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """False: there is no other device. Raises ``ValueError`` for one that does not exist."""
    check_device(device)
    check_device(peer_device)
    return False


def ipc_collect() -> None:
    """Does nothing: memory shared with other processes is the system's to free."""


def _is_in_bad_fork() -> bool:
    return False
