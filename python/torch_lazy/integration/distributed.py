"""``torch.distributed`` on device ``lazy``: the process group that a script names simply works.

A process group has a backend for each type of device. The bytes of lazy tensors are memory of the
CPU, and the kernels of the collectives (``csrc/device/collectives.cpp``) hand it to the CPU's
backend, gloo as a rule. So in every group the backend of ``lazy`` is the backend of ``cpu``, which
is what this module sees to, whether a script names both, one of them or neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed


def _agree(backends: dict[str, str]) -> None:
    """Gives ``lazy`` and ``cpu`` one backend in a group's table, where it has either of them."""
    from torch.distributed import Backend

    shared = backends.get("lazy", backends.get("cpu"))
    if shared is None:
        return
    capable = Backend.backend_capability.get(shared)
    if "lazy" in backends and capable is not None and "cpu" not in capable:
        raise ValueError(
            f"backend {shared} cannot communicate tensors on device lazy, whose memory is the "
            f"CPU's: name a backend that communicates CPU tensors, as in 'lazy:gloo'"
        )
    if backends.get("cpu", shared) != shared:
        raise ValueError(
            f"tensors on device lazy are communicated by the CPU's backend, but {shared} was given "
            f"for lazy and {backends['cpu']} for cpu: give both the same"
        )
    backends.update(cpu=shared, lazy=shared)


def _with_lazy(initialize: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(initialize)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        _agree(self.device_backend_map)

    return __init__


def _index(device: torch.device | str) -> int:
    """Index of a lazy device; raises ``ValueError`` where there is none of that name."""
    from torch_lazy.device import device_index

    return device_index(device)


def _accept_device_id(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        device = kwargs.get("device_id")
        if isinstance(device, torch.device) and device.type == "lazy":
            # PyTorch takes the machine's accelerator only, to connect it early: gloo never does.
            _index(device)
            del kwargs["device_id"]
            if not args and kwargs.get("backend") is None:
                kwargs["backend"] = torch.distributed.get_default_backend_for_device("lazy")
        original(*args, **kwargs)

    return init_process_group


def _accept_device_without_index(original: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(original)
    def _get_device_index(device: Any, *args: Any, **kwargs: Any) -> int:
        if isinstance(device, (str, torch.device)) and torch.device(device).type == "lazy":
            return _index(device)
        return original(device, *args, **kwargs)

    return _get_device_index


def install() -> None:
    """Makes process groups know device ``lazy``; nothing where PyTorch was built without them."""
    if not torch.distributed.is_available():
        return
    from torch.distributed import Backend, distributed_c10d
    from torch.nn.parallel import distributed as data_parallel

    Backend.default_device_backend_map.setdefault("lazy", Backend.GLOO)
    config = distributed_c10d.BackendConfig
    config.__init__ = _with_lazy(config.__init__)  # type: ignore[method-assign]
    init = _accept_device_id(distributed_c10d.init_process_group)
    torch.distributed.init_process_group = distributed_c10d.init_process_group = init
    data_parallel._get_device_index = _accept_device_without_index(data_parallel._get_device_index)
