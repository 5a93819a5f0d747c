"""Operators of other libraries on device ``lazy``.

An operator with a kernel for the CPU and a composite one runs the former, as on the CPU, once the
device was told of it: where a kernel is registered, and where a library is loaded.

``torch.library.register_autocast`` registers a kernel with the autocast key of the named type of
device, and casts tensors of that type. The key of ``lazy`` is its carrier's (``autocast.py``), so
the carrier is named in its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._library import custom_ops

from torch_lazy.integration.autocast import CARRIER, is_lazy, with_the_same_state


def _for_lazy(register: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which takes ``"lazy"``, and registers for all types that share a state.

    Libraries call it where they are imported, where no device is to be chosen.
    """

    @functools.wraps(register)
    def register_autocast(op: Any, device_type: Any, *args: Any, **kwargs: Any) -> Any:
        result = register(op, CARRIER if is_lazy(device_type) else device_type, *args, **kwargs)
        if not isinstance(device_type, str):
            return result
        other = with_the_same_state(device_type, chooses=False)
        if other is not None:
            register(op, other, *args, **kwargs)
        return result

    return register_autocast


def _of_lazy_tensors(cast: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which casts tensors of the registered type: the carrier's are lazy tensors."""

    @functools.wraps(cast)
    def cast_lazy_tensors(value: Any, device_type: str, dtype: torch.dtype) -> Any:
        return cast(value, "lazy" if device_type == CARRIER else device_type, dtype)

    return cast_lazy_tensors


def _then(look: Callable[[], None], register: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which brings kernels, and then the device's look at them."""

    @functools.wraps(register)
    def registering(*args: Any, **kwargs: Any) -> Any:
        result = register(*args, **kwargs)
        look()
        return result

    return registering


def install() -> None:
    """Wraps what registers operators and casts of them; call once."""
    from torch_lazy import _C

    look = _C.register_new_operators
    torch.library.Library.impl = _then(look, torch.library.Library.impl)
    type(torch.ops).load_library = _then(look, type(torch.ops).load_library)
    torch.library.register_autocast = _for_lazy(torch.library.register_autocast)
    custom_ops.CustomOpDef.register_autocast = _for_lazy(custom_ops.CustomOpDef.register_autocast)
    custom_ops._cast = torch.library._cast = _of_lazy_tensors(custom_ops._cast)
