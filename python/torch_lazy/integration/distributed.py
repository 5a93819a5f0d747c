"""``torch.distributed`` on device ``lazy``: the process group that a script names simply works.

A process group has a backend for each type of device. The kernels of the collectives
(``csrc/device/collectives.cpp``) hand it the memory that lazy tensors have: of the CPU, where the
backend is gloo as a rule, or of CUDA. So in every group the backend of ``lazy`` is that of the
device where lazy tensors live, which is what this module sees to, whether a script names both, one
of them or neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed


def _home(*, choose: bool) -> str:
    """The type of device where lazy tensors live: chosen now, or the CPU while none is."""
    from torch_lazy import _C

    kind = _C.execution_device() if choose else _C.chosen_execution_device()
    return str(kind or "cpu")


def _agree(backends: dict[str, str]) -> None:
    """Gives ``lazy`` and the device behind it one backend in a group's table that has either."""
    from torch.distributed import Backend

    home = _home(choose="lazy" in backends)  # others may not want the device at all
    shared = backends.get("lazy", backends.get(home))
    if shared is None:
        return
    name = home.upper()
    capable = Backend.backend_capability.get(shared)
    if "lazy" in backends and capable is not None and home not in capable:
        default = Backend.default_device_backend_map.get(home, "gloo")
        raise ValueError(
            f"backend {shared} cannot communicate tensors on device lazy, which are {name} "
            f"tensors: name a backend that communicates those, as in 'lazy:{default}'"
        )
    if backends.get(home, shared) != shared:
        raise ValueError(
            f"tensors on device lazy are communicated by the backend of {home}, but {shared} was "
            f"given for lazy and {backends[home]} for {home}: give both the same"
        )
    backends.update({home: shared, "lazy": shared})


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


def _default_by_home(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def get_default_backend_for_device(device: str | torch.device) -> str:
        name = device.type if isinstance(device, torch.device) else str(device).split(":")[0]
        return original(_home(choose=True) if name == "lazy" else device)

    return get_default_backend_for_device


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
    default = _default_by_home(distributed_c10d.get_default_backend_for_device)
    distributed_c10d.get_default_backend_for_device = default
    torch.distributed.get_default_backend_for_device = default
    init = _accept_device_id(distributed_c10d.init_process_group)
    torch.distributed.init_process_group = distributed_c10d.init_process_group = init
    data_parallel._get_device_index = _accept_device_without_index(data_parallel._get_device_index)
