"""Lazy tensors go to other processes in shared memory, as CPU tensors do.

Where lazy tensors live on the CPU, the buffer of a lazy storage (see ``storage.py``) is a CPU
storage, and PyTorch moves those into shared memory and sends them. What arrives is the other
process's CPU storage on that memory, and here it gets a lazy storage of its own: always the same
one while that lives, so that views that were sent one by one are views of each other there too.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import reduction
from typing import Any

from torch.multiprocessing import reductions
from torch.storage import UntypedStorage

from torch_lazy.integration.storage import has_buffer, memory_for_others

_reduce_cpu_storage = reductions.reduce_storage

# From the address of a buffer to the lazy storage on it. A lazy storage keeps its buffer, so an
# address cannot be another buffer's while the reference is alive.
_storages = reductions.SharedCache()


def _storage_over(buffer: UntypedStorage) -> UntypedStorage:
    reference = _storages.get(buffer._cdata)
    storage = reference and UntypedStorage._new_with_weak_ptr(reference.cdata)
    if storage is None:
        from torch_lazy import _C

        storage = _C.storage_over(buffer)
        _storages[buffer._cdata] = reductions.StorageWeakRef(storage)
    return storage


def _rebuild_storage(rebuild: Callable[..., UntypedStorage], args: tuple[Any, ...]) -> Any:
    return _storage_over(rebuild(*args))


def _rebuild_empty_storage() -> UntypedStorage:
    return UntypedStorage(0, device="lazy")


def _reduce_storage(storage: UntypedStorage) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if not isinstance(storage, UntypedStorage) or not has_buffer(storage):
        return _reduce_cpu_storage(storage)
    if storage.nbytes() == 0:  # nothing to map
        return _rebuild_empty_storage, ()
    buffer = memory_for_others(storage)
    _storages[buffer._cdata] = reductions.StorageWeakRef(storage)
    return _rebuild_storage, _reduce_cpu_storage(buffer)


def install() -> None:
    """Lets multiprocessing's pickler send lazy storages, and so lazy tensors."""
    reductions.reduce_storage = _reduce_storage
    reduction.register(UntypedStorage, _reduce_storage)
