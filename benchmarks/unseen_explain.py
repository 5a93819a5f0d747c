"""Where the time of a step on a GPU goes: on the device, by kernel, and on the host."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

_STEPS = 10
_KERNELS_NAMED = 3


def explain(step: Callable[[], object], wait: Callable[[], None]) -> str:
    """One line: what the device did a step, what the host took for it, and the longest kernels."""
    for _ in range(3):
        step()
    wait()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        _several(step)
        wait()
    started = time.perf_counter()
    _several(step)
    host = (time.perf_counter() - started) / _STEPS
    wait()
    kernels: Counter[str] = Counter()
    launches = 0
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kernels[event.name] += event.device_time
            launches += 1
    longest = ", ".join(
        f"{name[:60]} {us / _STEPS:.1f}" for name, us in kernels.most_common(_KERNELS_NAMED)
    )
    return (
        f"device {kernels.total() / _STEPS:.1f} µs in {launches / _STEPS:.0f} commands, "
        f"host {1e6 * host:.1f} µs; {longest}"
    )


def _several(step: Callable[[], object]) -> None:
    for _ in range(_STEPS):
        step()
