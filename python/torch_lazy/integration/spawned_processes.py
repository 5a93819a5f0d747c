"""Processes that ``torch.multiprocessing.spawn`` starts, each of which has a number.

A script for CUDA gives each the device of its number: ``model.to(rank)``,
``torch.lazy.set_device(rank)``. Those on the CPU share it, and each knows the names of all.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch.multiprocessing


def _run(function: Callable[..., Any], processes: int, *args: Any) -> None:
    """What a process does: ``args`` are its number and what the script gave for the function."""
    from torch_lazy import _C

    _C.share_cpu(processes)
    function(*args)


def _with_names(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start_processes(
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        nprocs: int = 1,
        *rest: Any,
        **named: Any,
    ) -> Any:
        if nprocs > 1:
            fn = functools.partial(_run, fn, nprocs)
        return original(fn, args, nprocs, *rest, **named)

    return start_processes


def install() -> None:
    """Wraps what ``spawn`` and launchers call; call once."""
    module = sys.modules["torch.multiprocessing.spawn"]  # its name is a function's in the package
    start = _with_names(module.start_processes)
    module.start_processes = torch.multiprocessing.start_processes = start
