"""Memory of lazy tensors, with the habits of ``torch.cuda``.

What is counted are the bytes that the caching allocator has handed out: lazy tensors that have
memory, and what operators and windows need while they run. Results that are still pending have
none. With ``TORCH_LAZY_ALLOCATOR=system`` nothing is counted. Where lazy tensors live on another
device than the CPU, its own module answers: ``torch.cuda``, say.
"""

from __future__ import annotations

import functools
import os
import warnings

import torch

from torch_lazy.device import Device, asks_device, check_device

# Whoever asks for numbers does not use the device yet.
_asks_device = functools.partial(asks_device, choose=False)

OutOfMemoryError = torch.OutOfMemoryError

_ACCUMULATED = ("allocations", "cache_hits", "system_calls")
_accumulated_before: dict[str, int] = {}


@_asks_device
def memory_stats(device: Device = None) -> dict[str, int]:
    """Everything that is counted about memory, of all threads.

    The four numbers of bytes are there under the names that ``torch.cuda`` has for them, too:
    ``allocated_bytes.all.current`` and so on.

    ==============================  =============================================================
    ``allocated_bytes.current``     asked for and not freed
    ``allocated_bytes.peak``        the most of that since :func:`reset_peak_memory_stats`
    ``reserved_bytes.current``      taken from the system: in use, or kept for the next allocation
    ``reserved_bytes.peak``         the most of that since :func:`reset_peak_memory_stats`
    ``allocations``                 since :func:`reset_accumulated_memory_stats`
    ``cache_hits``                  of those, served without new memory from the system
    ``system_calls``                made to take memory from the system and to give it back
    ==============================  =============================================================
    """
    check_device(device)
    from torch_lazy import _C

    stats = _C.memory_stats()
    for name in _ACCUMULATED:
        stats[name] -= _accumulated_before.get(name, 0)
    for name in [name for name in stats if "_bytes." in name]:
        kind, when = name.split(".")
        stats[f"{kind}.all.{when}"] = stats[name]
    return stats


@_asks_device
def memory_allocated(device: Device = None) -> int:
    """Bytes that lazy tensors and running operations have."""
    return memory_stats(device)["allocated_bytes.current"]


@_asks_device
def max_memory_allocated(device: Device = None) -> int:
    """The most that :func:`memory_allocated` was since :func:`reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.peak"]


@_asks_device
def memory_reserved(device: Device = None) -> int:
    """Bytes taken from the system: those of :func:`memory_allocated`, and those kept for later."""
    return memory_stats(device)["reserved_bytes.current"]


@_asks_device
def max_memory_reserved(device: Device = None) -> int:
    """The most that :func:`memory_reserved` was since :func:`reset_peak_memory_stats`."""
    return memory_stats(device)["reserved_bytes.peak"]


@_asks_device
def reset_peak_memory_stats(device: Device = None) -> None:
    """Lets the peaks begin at what is in use now."""
    check_device(device)
    from torch_lazy import _C

    _C.reset_peak_memory()


@_asks_device
def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Lets the counts of allocations and of calls to the system begin at zero."""
    check_device(device)
    from torch_lazy import _C

    stats = _C.memory_stats()
    _accumulated_before.update({name: stats[name] for name in _ACCUMULATED})


@_asks_device
def reset_max_memory_allocated(device: Device = None) -> None:
    """Same as :func:`reset_peak_memory_stats`, as in ``torch.cuda``."""
    reset_peak_memory_stats(device)


@_asks_device
def reset_max_memory_cached(device: Device = None) -> None:
    """Same as :func:`reset_peak_memory_stats`, as in ``torch.cuda``."""
    reset_peak_memory_stats(device)


@_asks_device
def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Bytes of memory of the machine that are free for programs, and all of them."""
    check_device(device)
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo") as lines:
            values = dict(line.split(":") for line in lines)
        return int(values["MemAvailable"].split()[0]) * 1024, total
    except (OSError, KeyError):  # not Linux: pages that the system could drop count as used
        return page * os.sysconf("SC_AVPHYS_PAGES"), total


@_asks_device
def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The numbers of :func:`memory_stats` as a table for people."""
    stats = memory_stats(device)
    rows = [
        "| memory of device lazy |       now, MiB |      peak, MiB |",
        "|-----------------------|----------------|----------------|",
    ]
    for title, kind in (("allocated", "allocated_bytes"), ("reserved", "reserved_bytes")):
        now, peak = (stats[f"{kind}.{when}"] / 2**20 for when in ("current", "peak"))
        rows.append(f"| {title:<21} | {now:14.2f} | {peak:14.2f} |")
    if not abbreviated:
        rows += [f"{name.replace('_', ' ')}: {stats[name]}" for name in _ACCUMULATED]
    return "\n".join(rows)


@_asks_device
def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Warns that the device does not limit its memory, unless ``fraction`` is 1."""
    check_device(device)
    if not isinstance(fraction, (int, float)):
        raise TypeError(f"fraction must be a number, not {type(fraction).__name__}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be from 0 to 1, not {fraction}")
    if fraction < 1:
        warnings.warn(
            f"device lazy does not limit its memory: set_per_process_memory_fraction({fraction}) "
            "has no effect; limit the process with `ulimit -v` or a cgroup",
            stacklevel=2,
        )


@_asks_device
def get_per_process_memory_fraction(device: Device = None) -> float:
    """1.0: the device does not limit its memory."""
    check_device(device)
    return 1.0


@_asks_device
def empty_cache() -> None:
    """Gives all memory that is kept for later back to the system.

    Not needed to avoid running out of memory: the allocator does it before it gives up, and gives
    back by itself what was not used for ten seconds.
    """
    from torch_lazy import _C

    _C.empty_cache()
