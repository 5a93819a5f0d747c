"""Sync points on request."""

from __future__ import annotations

import functools
from types import ModuleType

import torch

from torch_lazy.device import device_index


@functools.cache
def _library() -> ModuleType:
    # Once: an import statement costs more than a sync point that has nothing to run.
    from torch_lazy import _C

    return _C


def synchronize(device: torch.device | int | str | None = None) -> None:
    """Runs all pending work of all threads, and waits for the device to have done it.

    Raises the error that a deferred operation left, naming the line that recorded it.
    """
    _library().synchronize(-1 if device is None else device_index(device))


def mark_step(device: str = "", wait: bool = False) -> None:
    """Same as :func:`synchronize`, for scripts written for PyTorch's own lazy tensors."""
    synchronize()


def wait_for_compiles(timeout: float | None = None) -> bool:
    """Blocks until the background compiles have ended, at most ``timeout`` seconds.

    Those that were put off because they did not pay yet are made, too. For tests and benchmarks: a
    script never needs it. Returns whether all have ended.
    """
    return _library().wait_for_compiles(timeout)
