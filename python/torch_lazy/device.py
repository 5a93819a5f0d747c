"""The device, with the habits of ``torch.cuda``."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import torch

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

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


def execution_device() -> torch.device:
    """The type of device on which lazy tensors live, ``cpu`` unless chosen: ``lazy:N`` is its N-th.

    Chosen now, if no lazy tensor was made yet.
    """
    from torch_lazy import _C

    return torch.device(_C.execution_device())


def device_count() -> int:
    """Number of devices of the type on which lazy tensors live; 1 on the CPU.

    A launcher of several processes, ``torchrun``, gives each one the number ``LOCAL_RANK`` among
    ``LOCAL_WORLD_SIZE``: on the CPU there are then so many names, of which the process's own is
    where its tensors are, whichever of them it asks for.
    """
    from torch_lazy import _C

    return _C.device_count()


def current_device() -> int:
    """Index of the device that ``"lazy"`` without an index means."""
    from torch_lazy import _C

    return _C.current_device()


def set_device(device: torch.device | int | str) -> None:
    """Makes a device the current one of this thread; raises ``ValueError`` where there is none."""
    index = _index(device)
    if index is not None:
        from torch_lazy import _C

        _C.set_device(index)


def check_device(device: Device) -> None:
    """Raises ``ValueError`` unless it is ``None`` or names a device of this module."""
    if device is not None:
        _index(device)


def device_index(device: Device = None) -> int:
    """Index of a device, by default the current one; ``ValueError`` where there is none."""
    index = None if device is None else _index(device)
    return current_device() if index is None else index


def _index(device: torch.device | int | str) -> int | None:
    """Of a device that exists; ``None`` for ``"lazy"``, the current one."""
    if not isinstance(device, int) and torch.device(device).type != "lazy":
        raise ValueError(f"expected a lazy device, but got {device}")
    index = device if isinstance(device, int) else torch.device(device).index
    count = device_count() if index else 1  # device 0 is there, and must not choose one
    if index is not None and not 0 <= index < count:
        some = "1 device, lazy:0" if count == 1 else f"{count} devices"
        raise ValueError(f"there is no device lazy:{index}: device lazy has {some}")
    return index


def asks_device(
    function: Callable[_Arguments, _Result], choose: bool = True
) -> Callable[_Arguments, _Result]:
    """What the function tells of the CPU, the module of the execution device tells of its own.

    That is the function of the same name in ``torch.cuda``, say. Raises ``NotImplementedError``
    where that module has none. With ``choose`` the device is chosen for it; without, the CPU's
    answer stands until then.
    """

    @functools.wraps(function)
    def ask(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        from torch_lazy import _C

        kind = _C.execution_device() if choose else _C.chosen_execution_device()
        if kind in ("", "cpu"):
            return function(*args, **kwargs)
        asked = getattr(torch.get_device_module(kind), function.__name__, None)
        if asked is None:
            raise NotImplementedError(
                f"torch.lazy.{function.__name__}(): device lazy lives on {kind}, and torch.{kind} "
                f"has no {function.__name__}()"
            )
        given = signature.bind(*args, **kwargs)
        for name in {"device", "peer_device"} & given.arguments.keys():
            if given.arguments[name] is not None:
                given.arguments[name] = device_index(given.arguments[name])
        return asked(*given.args, **given.kwargs)

    signature = inspect.signature(function)
    return ask


class device:
    """Context in which a device is the current one.

    ``None`` and a negative index are accepted and change nothing, as ``torch.cuda.device`` does.
    """

    def __init__(self, device: Any) -> None:
        nothing = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if nothing else device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            if self.idx != self.prev_idx:
                set_device(self.idx)

    def __exit__(self, *exception: object) -> bool:
        if self.idx != self.prev_idx:
            set_device(self.prev_idx)
        return False


class device_of(device):
    """Context in which the device of a tensor is the current one; of one elsewhere, no change."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_lazy", False) else -1)


def get_device_name(device: Device = None) -> str:
    """Name of the backend that compiles windows, and of the hardware that they run on."""
    check_device(device)
    from torch_lazy import _C

    kind = execution_device().type
    behind = "" if kind == "cpu" else f" on {kind}"
    return f"{_C.get_setting('backend')}{behind} ({_C.device_name()})"


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


@asks_device
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


@asks_device
def get_device_capability(device: Device = None) -> tuple[int, int]:
    """``(0, 0)``: the device has none of the features that CUDA numbers.

    Scripts that choose kernels by this number then take the way that every device can go.
    """
    check_device(device)
    return (0, 0)


@asks_device
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
