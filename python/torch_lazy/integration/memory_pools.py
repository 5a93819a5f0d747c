"""``torch.cuda.use_mem_pool`` and lazy tensors: what is made in the block is in the pool.

A pool takes what its thread allocates in the block. Operations that are deferred allocate when they
run, behind the block or on another thread, so there they run at the call.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch


def _at_the_call(
    use_mem_pool: Callable[..., AbstractContextManager[None]],
) -> Callable[..., AbstractContextManager[None]]:
    @contextlib.contextmanager
    @functools.wraps(use_mem_pool)
    def function(*args: Any, **kwargs: Any) -> Iterator[None]:
        from torch_lazy import _C

        if _C.chosen_execution_device() not in ("", "cuda"):
            with use_mem_pool(*args, **kwargs):
                yield
            return
        # What was pending before runs now, and so allocates where eager would have.
        deferring = _C.set_deferring(False)
        try:
            with use_mem_pool(*args, **kwargs):
                yield
        finally:
            _C.set_deferring(deferring)

    return function


def install() -> None:
    """Replaces the function, where PyTorch is made with it."""
    if hasattr(torch.cuda, "use_mem_pool"):
        replaced = _at_the_call(torch.cuda.use_mem_pool)
        torch.cuda.use_mem_pool = torch.cuda.memory.use_mem_pool = replaced
