"""What was recorded, deferred, flushed, compiled, and why."""

from __future__ import annotations

from typing import Any


def metrics() -> dict[str, Any]:
    """Counters since the start of the process or :func:`reset_metrics`.

    ``recorded`` operations reached the recorder; ``deferred`` of them followed a known trace and
    were run by a window, ``eager`` ran at the call. ``bypassed`` operations ran at the call unseen,
    since it did not pay to record what came before them. ``windows`` counts windows by how they
    ended (cold, warm, hot, guard failed), ``flushes`` their ends and ``syncs`` sync points by
    reason, ``fallbacks`` operators that cost speed by name. ``windows_run`` windows were run by
    executables in ``run_ns`` nanoseconds; ``compiles`` counts executables made, ``dynamic_scalars``
    numbers that changed and became inputs of their window, ``onednn_products`` matrix products that
    oneDNN computed where eager calls MKL. ``remembered_traces`` counts windows recorded for the
    first time that an earlier process ran often. ``early_runs`` counts windows with which a device
    had begun before they were recorded, by what became of that (finished, dropped). ``choices``
    counts compiled windows by what was measured to be faster, and ``chosen`` describes those that
    do not run as compiled. ``bytes_moved`` are bytes moved between the host and a device that has
    no kernels of PyTorch's, by direction and by what they moved for. ``disk_cache`` counts kernels
    found on disk (hit) or not (miss), compiled and kept (stored), removed for others (evicted), and
    failures (refused, broken, not stored). ``compile_ns`` is the processor time of compiles in
    nanoseconds, by pass.
    """
    from torch_lazy import _C

    return _C.metrics()


def reset_metrics() -> None:
    """Sets every counter to zero."""
    from torch_lazy import _C

    _C.reset_metrics()


def compile_count() -> int:
    """Executables made so far."""
    return metrics()["compiles"]
