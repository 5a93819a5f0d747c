"""Memory of lazy tensors, with the habits of ``torch.cuda``.

What is counted are the bytes that the caching allocator has handed out: lazy tensors that have
memory, and what operators and windows need while they run. Results that are still pending have
none. With ``TORCH_LAZY_ALLOCATOR=system`` nothing is counted.
"""

from __future__ import annotations

import torch

from torch_lazy.device import set_device

_Device = torch.device | int | str | None


def memory_stats(device: _Device = None) -> dict[str, int]:
    """Everything that is counted about memory, of all threads.

    ==============================  =============================================================
    ``allocated_bytes.current``     asked for and not freed
    ``allocated_bytes.peak``        the most of that since :func:`reset_peak_memory_stats`
    ``reserved_bytes.current``      taken from the system: in use, or kept for the next allocation
    ``reserved_bytes.peak``         the most of that since :func:`reset_peak_memory_stats`
    ``allocations``                 since the start of the process
    ``cache_hits``                  of those, served without new memory from the system
    ``system_calls``                made to take memory from the system and to give it back
    ==============================  =============================================================
    """
    _check(device)
    from torch_lazy import _C

    return _C.memory_stats()


def memory_allocated(device: _Device = None) -> int:
    """Bytes that lazy tensors and running operations have."""
    return memory_stats(device)["allocated_bytes.current"]


def max_memory_allocated(device: _Device = None) -> int:
    """The most that :func:`memory_allocated` was since :func:`reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.peak"]


def memory_reserved(device: _Device = None) -> int:
    """Bytes taken from the system: those of :func:`memory_allocated`, and those kept for later."""
    return memory_stats(device)["reserved_bytes.current"]


def max_memory_reserved(device: _Device = None) -> int:
    """The most that :func:`memory_reserved` was since :func:`reset_peak_memory_stats`."""
    return memory_stats(device)["reserved_bytes.peak"]


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Lets the peaks begin at what is in use now."""
    _check(device)
    from torch_lazy import _C

    _C.reset_peak_memory()


def empty_cache() -> None:
    """Gives all memory that is kept for later back to the system.

    Not needed to avoid running out of memory: the allocator does it before it gives up, and gives
    back by itself what was not used for ten seconds.
    """
    from torch_lazy import _C

    _C.empty_cache()


def _check(device: _Device) -> None:
    if device is None:
        return
    if not isinstance(device, int) and torch.device(device).type != "lazy":
        raise ValueError(f"expected a lazy device, but got {device}")
    set_device(device)
