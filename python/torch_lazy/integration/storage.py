"""Storages of lazy tensors, ``torch.UntypedStorage`` and through it ``torch.TypedStorage``.

PyTorch's own methods go to a storage's data pointer, and that of a lazy storage is null: its bytes
are in a CPU storage inside, its *buffer*, once pending work has run. So a method is done on the
buffer. That is not marked as shared, except where its memory stays with others: in a slice, or in
shared memory. ``data_ptr()`` does not mark it either: who asks for the address of a storage wants
to tell storages apart, while ``Tensor.data_ptr()`` is for those who use the memory (tensor.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.storage import TypedStorage, UntypedStorage

_Device = torch.device | str | int


def _is_lazy(storage: UntypedStorage) -> bool:
    return storage.device.type == "lazy"


def has_buffer(storage: UntypedStorage) -> bool:
    """Whether the storage is a lazy one with bytes, not that of a subclass which wraps tensors.

    Such a one has nothing but a device. What is asked of it PyTorch's own methods answer; whoever
    wants its bytes is told that it is none.
    """
    if not _is_lazy(storage):
        return False
    from torch_lazy import _C

    return _C.has_buffer(storage)


def _bytes_of(storage: UntypedStorage, shared: bool = False) -> UntypedStorage:
    """The CPU storage with the bytes: a lazy storage's buffer, any other storage itself."""
    if not _is_lazy(storage):
        return storage
    from torch_lazy import _C

    return _C.storage_buffer(storage, shared)


def memory_for_others(storage: UntypedStorage) -> UntypedStorage:
    """The buffer of a lazy storage, for other processes: it stays shared with them."""
    buffer = _bytes_of(storage, shared=True)
    if buffer.device.type != "cpu":
        raise RuntimeError(
            f"cannot share memory of device lazy with other processes: it lives on {buffer.device} "
            "here; send x.cpu()"
        )
    return buffer


def _on_the_buffer(original: Callable[..., Any], shared: bool = False) -> Callable[..., Any]:
    """The method for lazy storages too; what would return the buffer returns the storage."""

    @functools.wraps(original)
    def method(self: UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if not _is_lazy(self):
            return original(self, *args, **kwargs)
        buffer = memory_for_others(self) if shared else _bytes_of(self)
        result = original(buffer, *args, **kwargs)
        return self if result is buffer else result

    return method


def _about_the_buffer(original: Callable[..., Any]) -> Callable[..., Any]:
    """As :func:`_on_the_buffer`, for a method that only asks: a storage without bytes answers."""
    on_the_buffer = _on_the_buffer(original)

    @functools.wraps(original)
    def method(self: UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        ask = on_the_buffer if has_buffer(self) else original
        return ask(self, *args, **kwargs)

    return method


def _from_the_host(original: Callable[..., Any]) -> Callable[..., Any]:
    """The method for lazy storages too, on a CPU storage: some devices' memory it cannot read."""

    @functools.wraps(original)
    def method(self: UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        storage = _bytes_of(self).cpu() if _is_lazy(self) else self
        return original(storage, *args, **kwargs)

    return method


def _through_the_host(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    """As :func:`_from_the_host`, for a method that writes the storage."""

    @functools.wraps(original)
    def method(self: UntypedStorage, *args: Any, **kwargs: Any) -> UntypedStorage:
        if not _is_lazy(self):
            return original(self, *args, **kwargs)
        buffer = _bytes_of(self)
        host = buffer.cpu()
        original(host, *args, **kwargs)
        if host is not buffer:
            buffer.copy_(host)
        return self

    return method


def _new(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    @functools.wraps(original)
    def __new__(cls: type, *args: Any, device: _Device | None = None, **kwargs: Any) -> Any:
        if device is None:
            return original(cls, *args, **kwargs)
        if torch.device(device).type != "lazy":
            return original(cls, *args, device=device, **kwargs)
        from torch_lazy import _C
        from torch_lazy.device import device as on_device

        with on_device(device):
            if len(args) == 1 and isinstance(args[0], int) and not kwargs:
                return _C.new_storage(args[0])
            values = original(cls, *args, **kwargs)  # a sequence, nothing, or an error of PyTorch's
            return _C.new_storage(values.nbytes()).copy_(values)

    return __new__


def _copy_(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    @functools.wraps(original)
    def copy_(self: UntypedStorage, source: Any, *args: Any, **kwargs: Any) -> UntypedStorage:
        if isinstance(source, TypedStorage):
            source = source._untyped_storage
        if isinstance(source, UntypedStorage):
            source = _bytes_of(source)
        original(_bytes_of(self), source, *args, **kwargs)
        return self

    return copy_


def _getitem(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __getitem__(self: UntypedStorage, index: Any) -> Any:
        if not _is_lazy(self):
            return original(self, index)
        if not isinstance(index, slice):
            return original(_bytes_of(self), index)
        from torch_lazy import _C

        # A slice is a storage on the same memory, which no window could know.
        return _C.storage_over(original(_bytes_of(self, shared=True), index))

    return __getitem__


def _resize_(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    @functools.wraps(original)
    def resize_(self: UntypedStorage, size: int) -> UntypedStorage:
        if not _is_lazy(self):
            return original(self, size)
        if not isinstance(size, int):
            raise TypeError(f"resize_ expects a number of bytes, but got {size!r}")
        from torch_lazy import _C

        _C.resize_storage(self, size)
        return self

    return resize_


def _to(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    @functools.wraps(original)
    def to(self: UntypedStorage, *, device: _Device, non_blocking: bool = False) -> UntypedStorage:
        there = torch.device(device)
        if there.type == "lazy":
            return (
                self if _is_lazy(self) else UntypedStorage(self.nbytes(), device=there).copy_(self)
            )
        if _is_lazy(self):
            return original(self.cpu(), device=there, non_blocking=non_blocking)
        return original(self, device=there, non_blocking=non_blocking)

    return to


def _new_shared(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    @functools.wraps(original)
    def new_shared(cls: type, size: int, *, device: _Device = "cpu") -> UntypedStorage:
        if torch.device(device).type != "lazy":
            return original(cls, size, device=device)
        from torch_lazy import _C

        if _C.execution_device() != "cpu":
            return memory_for_others(UntypedStorage(size, device=device))
        return _C.storage_over(original(cls, size, device="cpu"))

    return new_shared


def _new_empty(original: Callable[..., UntypedStorage]) -> Callable[..., UntypedStorage]:
    @functools.wraps(original)
    def new(self: UntypedStorage) -> UntypedStorage:
        return UntypedStorage(0, device=self.device) if _is_lazy(self) else original(self)

    return new


def _untyped_lazy(self: UntypedStorage) -> UntypedStorage:
    """The storage on device ``lazy``, as ``cuda()`` is for CUDA."""
    return self.to(device="lazy")


def _typed_lazy(self: TypedStorage) -> TypedStorage:
    """The storage on device ``lazy``, as ``cuda()`` is for CUDA."""
    return self.to(device="lazy")


def _typed_is_lazy(self: TypedStorage) -> bool:
    """Whether the storage is on device ``lazy``."""
    return _is_lazy(self._untyped_storage)


def _through_the_buffer(original: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """What PyTorch says of a tensor's memory: of a lazy tensor, of the memory of its buffer."""

    @functools.wraps(original)
    def of(tensor: torch.Tensor) -> Any:
        if tensor.device.type != "lazy" or not has_buffer(tensor.untyped_storage()):
            return original(tensor)
        buffer = _bytes_of(tensor.untyped_storage())
        return original(torch.empty(0, dtype=torch.uint8, device=buffer.device).set_(buffer))

    return of


def install() -> None:
    """Gives ``torch.UntypedStorage`` methods that know lazy storages."""
    for name in ("data_ptr", "resizable", "is_shared", "_get_filename"):
        setattr(UntypedStorage, name, _about_the_buffer(getattr(UntypedStorage, name)))
    for name in ("fill_", "__setitem__"):
        setattr(UntypedStorage, name, _on_the_buffer(getattr(UntypedStorage, name)))
    UntypedStorage._write_file = _from_the_host(UntypedStorage._write_file)
    UntypedStorage._byteswap = _through_the_host(UntypedStorage._byteswap)
    UntypedStorage._set_from_file = _through_the_host(UntypedStorage._set_from_file)
    for name in ("share_memory_", "_share_fd_cpu_", "_share_filename_cpu_"):
        setattr(UntypedStorage, name, _on_the_buffer(getattr(UntypedStorage, name), shared=True))
    for name in ("_is_cow_tensor", "_data_address"):
        setattr(torch._C, name, _through_the_buffer(getattr(torch._C, name)))
    UntypedStorage.__new__ = _new(UntypedStorage.__new__)
    UntypedStorage.__getitem__ = _getitem(UntypedStorage.__getitem__)
    UntypedStorage.copy_ = _copy_(UntypedStorage.copy_)
    UntypedStorage.resize_ = _resize_(UntypedStorage.resize_)
    UntypedStorage.to = _to(UntypedStorage.to)
    UntypedStorage.new = _new_empty(UntypedStorage.new)
    UntypedStorage._new_shared = classmethod(_new_shared(UntypedStorage._new_shared.__func__))
    UntypedStorage.is_lazy, UntypedStorage.lazy = property(_is_lazy), _untyped_lazy
    TypedStorage.is_lazy, TypedStorage.lazy = property(_typed_is_lazy), _typed_lazy
