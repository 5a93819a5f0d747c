"""``torch.autocast("lazy")``.

PyTorch keeps autocast's state by device type and knows no type ``lazy``. Here it is kept under a
type that nothing else uses, whose key is included in a thread's dispatch while it is enabled. Where
lazy tensors live on another device than the CPU, its state and that of ``lazy`` are one:
``torch.autocast("cuda")`` in a script that was written for CUDA casts lazy tensors, and
``torch.autocast("lazy")`` those of CUDA.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from torch_lazy import _C
from torch_lazy.integration.accelerator import machines_accelerator
from torch_lazy.integration.builtins import replace_builtin

CARRIER = "ipu"
_thread = threading.local()


def _start_with_the_devices_dtype() -> None:
    """The state belongs to a thread, where the carrier's dtype begins as float16.

    The dtype asked for is that of the device whose casts are made: bfloat16 on the CPU. It is set
    anew where lazy tensors have come to live on another one.
    """
    device = _C.autocast_device()
    if getattr(_thread, "device", None) != device:
        _thread.device = device
        torch._C.set_autocast_dtype(CARRIER, torch._C.get_autocast_dtype(device))


def is_lazy(device_type: Any) -> bool:
    """An index may be part of it, as PyTorch's functions for other devices take one."""
    return device_type == "lazy" or (
        isinstance(device_type, str) and device_type.startswith("lazy:")
    )


def _likely_device() -> str:
    """The device whose casts are made, or will be in all likelihood.

    Nobody chooses it by entering a region of another device, which a child process may do that must
    not use the device.
    """
    from torch_lazy.config import config

    if _C.chosen_execution_device():
        return _C.autocast_device()
    accelerator = machines_accelerator()
    return config.device or ("cpu" if accelerator is None else accelerator.type)


def with_the_same_state(device_type: str, *, chooses: bool = True) -> str | None:
    """The other type of device whose state is that of this one.

    For ``lazy`` that is the device which lazy tensors live on: ``chooses`` it where nobody has, or
    says which one it will be in all likelihood.
    """
    if is_lazy(device_type):
        device = _C.autocast_device() if chooses else _likely_device()
        return None if device == "cpu" else device  # a program has tensors of the CPU besides
    shared = device_type != "cpu" and device_type == _likely_device()
    return CARRIER if shared else None


def _for_lazy(function: Callable[..., Any], *, chooses: bool) -> Callable[..., Any]:
    """The function, which takes ``"lazy"`` too; ``chooses`` where it depends on the device."""

    @functools.wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        if args and is_lazy(args[0]):
            args = (CARRIER, *args[1:])
        elif is_lazy(kwargs.get("device_type")):
            kwargs["device_type"] = CARRIER
        else:
            return function(*args, **kwargs)
        if chooses:
            _start_with_the_devices_dtype()
        return function(*args, **kwargs)

    return translated


def _includes_the_carriers_key(set_enabled: Callable[..., None]) -> Callable[..., None]:
    """The function, after which operators of this thread are dispatched by the carrier's key."""

    @functools.wraps(set_enabled)
    def set_and_include(*args: Any, **kwargs: Any) -> None:
        set_enabled(*args, **kwargs)
        if (args[0] if args else kwargs.get("device_type")) == CARRIER:
            enabled = torch._C.is_autocast_enabled(CARRIER)
            torch._C._dispatch_tls_set_dispatch_key_included("AutocastIPU", enabled)

    return set_and_include


def _sets_both(
    function: Callable[..., None], of_pytorch: Callable[..., None]
) -> Callable[..., None]:
    """The function, which sets a state of ``lazy`` and of the device that has the same."""

    @functools.wraps(function)
    def set_both(*args: Any, **kwargs: Any) -> None:
        if args and args[0] == "cpu":  # whose state is its own; a region sets it four times
            return of_pytorch(*args, **kwargs)
        function(*args, **kwargs)
        device_type = args[0] if args else kwargs.get("device_type")
        if not isinstance(device_type, str):  # an old form, without a type of device
            return None
        other = with_the_same_state(device_type)
        if other is not None:
            kwargs.pop("device_type", None)
            function(other, *args[1:], **kwargs)
        return None

    return set_both


def _casts_both(cast: Callable[..., Any]) -> Callable[..., Any]:
    """The function, by which ``torch.amp.custom_fwd`` casts inputs on a type of device."""

    @functools.wraps(cast)
    def cast_both(value: Any, device_type: str, dtype: torch.dtype) -> Any:
        value = cast(value, device_type, dtype)
        shared = not is_lazy(device_type) and with_the_same_state(device_type) is not None
        return cast(value, "lazy", dtype) if shared else value

    return cast_both


def _with_lazy(supported: Callable[[], list[str]]) -> Callable[[], list[str]]:
    """The function, by which AOT autograd finds what is enabled and, if it is to, turns it off.

    While nothing is enabled on ``lazy`` there is nothing to turn off, and no device to choose.
    """

    @functools.wraps(supported)
    def supported_and_lazy() -> list[str]:
        enabled = torch._C.is_autocast_enabled(CARRIER)
        return [*supported(), "lazy"] if enabled else supported()

    return supported_and_lazy


def _let_higher_order_operators_through() -> None:
    """They have no kernels for autocast: each key of it is named to them as one to pass by."""
    key = torch._C.DispatchKey.AutocastIPU
    passed_by = getattr(torch._ops, "_HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS", None)
    if passed_by is None or key in passed_by:
        return
    passed_by.append(key)
    for operator in torch._ops._higher_order_ops.values():
        operator.fallthrough(key)


def _with_our_cache(clear: Callable[[], None]) -> Callable[[], None]:
    @functools.wraps(clear)
    def clear_both() -> None:
        clear()
        _C.clear_autocast_cache()

    return clear_both


def install() -> None:
    """Makes PyTorch's functions for autocast's state know device type ``lazy``."""
    available = _for_lazy(torch._C._is_autocast_available, chooses=False)
    torch._C._is_autocast_available = available
    torch._C._autocast_supported_devices = _with_lazy(torch._C._autocast_supported_devices)
    replace_builtin("is_autocast_enabled", _for_lazy(torch.is_autocast_enabled, chooses=False))
    replace_builtin("get_autocast_dtype", _for_lazy(torch.get_autocast_dtype, chooses=True))
    _let_higher_order_operators_through()
    set_enabled, set_dtype = torch.set_autocast_enabled, torch.set_autocast_dtype
    enable_lazy = _for_lazy(_includes_the_carriers_key(set_enabled), chooses=True)
    replace_builtin("set_autocast_enabled", _sets_both(enable_lazy, set_enabled))
    set_dtype_of_lazy = _for_lazy(set_dtype, chooses=True)
    replace_builtin("set_autocast_dtype", _sets_both(set_dtype_of_lazy, set_dtype))
    torch.amp.autocast_mode._cast = _casts_both(torch.amp.autocast_mode._cast)
    replace_builtin("clear_autocast_cache", _with_our_cache(torch.clear_autocast_cache))
