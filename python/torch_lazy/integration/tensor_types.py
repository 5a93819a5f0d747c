"""``Tensor.type`` and ``torch.set_default_tensor_type`` with the types of :mod:`..tensor_types`.

PyTorch has a list of devices whose types it knows by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_PREFIX = "torch.lazy."


def _named(kind: Any) -> Any:
    """The type of device ``lazy`` that is meant by its name or itself, or ``None``."""
    from torch_lazy import tensor_types

    if isinstance(kind, str) and kind.startswith(_PREFIX):
        kind = getattr(tensor_types, kind.removeprefix(_PREFIX), None)
    return kind if isinstance(kind, tensor_types.TensorType) else None


def _with_lazy(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def type(
        self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any
    ) -> str | torch.Tensor:
        kind = _named(dtype)
        if kind is None:
            return original(self, dtype, non_blocking, **kwargs)
        device = self.device if self.device.type == "lazy" else "lazy"
        return self.to(device, kind.dtype, non_blocking, **kwargs)

    return type


def _with_default(original: Callable[..., None]) -> Callable[..., None]:
    made_default = False  # by a type of device lazy

    @functools.wraps(original)
    def set_default(kind: Any) -> None:
        nonlocal made_default
        lazy = _named(kind)
        if lazy is not None:
            torch.set_default_dtype(lazy.dtype)
            torch.set_default_device("lazy")
        else:
            original(kind)
            if made_default:
                torch.set_default_device(None)
        made_default = lazy is not None

    return set_default


def install() -> None:
    """Wraps what takes types of tensors; call once."""
    torch.Tensor.type = _with_lazy(torch.Tensor.type)
    torch._C._set_default_tensor_type = _with_default(torch._C._set_default_tensor_type)
