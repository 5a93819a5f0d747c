"""What takes or tells types: those of :mod:`..tensor_types` and of :mod:`..storage_types`.

PyTorch has lists of devices whose types it knows by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import storage
from torch.storage import TypedStorage

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


def _with_lazy_module(original: Callable[[str], str]) -> Callable[[str], str]:
    @functools.wraps(original)
    def device_from_module(module: str) -> str:
        return "lazy" if module == "torch.lazy" else original(module)

    return device_from_module


def _with_lazy_storages(original: Callable[[TypedStorage], Any]) -> Callable[[TypedStorage], Any]:
    @functools.wraps(original)
    def legacy_class(self: TypedStorage) -> Any:
        if self.device.type != "lazy":
            return original(self)
        from torch_lazy import storage_types

        return storage_types.type_of(self.dtype)

    return legacy_class


def install() -> None:
    """Wraps what takes and tells types; call once."""
    storage._get_device_from_module = _with_lazy_module(storage._get_device_from_module)
    TypedStorage._get_legacy_storage_class = _with_lazy_storages(
        TypedStorage._get_legacy_storage_class
    )
    torch.Tensor.type = _with_lazy(torch.Tensor.type)
    torch._C._set_default_tensor_type = _with_default(torch._C._set_default_tensor_type)
