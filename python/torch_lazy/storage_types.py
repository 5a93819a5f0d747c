"""Storages by dtype, as ``torch.cuda.FloatStorage``, which older scripts are written with.

What they make is a ``torch.TypedStorage``, and one of the device is an instance of the type of its
dtype, as PyTorch's are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.storage import _LegacyStorage, _LegacyStorageMeta, _warn_typed_storage_removal


class StorageType(_LegacyStorageMeta):
    """The type of these types."""

    _dtype: torch.dtype

    @property
    def dtype(cls) -> torch.dtype:
        """That of the elements."""
        _warn_typed_storage_removal()
        return cls._dtype


class _LazyStorage(_LegacyStorage, metaclass=StorageType):
    @classmethod
    def from_buffer(cls, *_: Any, **__: Any) -> Any:
        """Makes storages of the CPU alone, as on CUDA."""
        raise RuntimeError("from_buffer: not available for a storage of device lazy")


_types: dict[torch.dtype, StorageType] = {}


def type_of(dtype: torch.dtype) -> StorageType | None:
    """The type of storages with elements of a dtype; some dtypes have none."""
    return _types.get(dtype)


def _type(name: str, dtype: torch.dtype) -> StorageType:
    doc = f"Storages of {dtype} on device ``lazy``."
    members = {"_dtype": dtype, "__module__": "torch.lazy", "__doc__": doc}
    return _types.setdefault(dtype, StorageType(name, (_LazyStorage,), members))


BFloat16Storage = _type("BFloat16Storage", torch.bfloat16)
BoolStorage = _type("BoolStorage", torch.bool)
ByteStorage = _type("ByteStorage", torch.uint8)
CharStorage = _type("CharStorage", torch.int8)
ComplexDoubleStorage = _type("ComplexDoubleStorage", torch.complex128)
ComplexFloatStorage = _type("ComplexFloatStorage", torch.complex64)
DoubleStorage = _type("DoubleStorage", torch.float64)
FloatStorage = _type("FloatStorage", torch.float32)
HalfStorage = _type("HalfStorage", torch.float16)
IntStorage = _type("IntStorage", torch.int32)
LongStorage = _type("LongStorage", torch.int64)
ShortStorage = _type("ShortStorage", torch.int16)
