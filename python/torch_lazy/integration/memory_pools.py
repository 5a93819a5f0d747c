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

from torch_lazy.integration.at_the_call import at_the_call


def _with_lazy_tensors(
    use_mem_pool: Callable[..., AbstractContextManager[None]],
) -> Callable[..., AbstractContextManager[None]]:
    @contextlib.contextmanager
    @functools.wraps(use_mem_pool)
    def function(*args: Any, **kwargs: Any) -> Iterator[None]:
        from torch_lazy import _C

        elsewhere = _C.chosen_execution_device() not in ("", "cuda")
        # What was pending before runs first, and so allocates where eager would have.
        scope = contextlib.nullcontext() if elsewhere else at_the_call()
        with scope, use_mem_pool(*args, **kwargs):
            yield

    return function


def install() -> None:
    """Replaces the function, where PyTorch is made with it."""
    if hasattr(torch.cuda, "use_mem_pool"):
        replaced = _with_lazy_tensors(torch.cuda.use_mem_pool)
        torch.cuda.use_mem_pool = torch.cuda.memory.use_mem_pool = replaced
