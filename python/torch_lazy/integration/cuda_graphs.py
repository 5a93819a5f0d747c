"""``torch.cuda.graph`` and what is made with it: lazy tensors cannot be captured, and say so.

A graph has what the device is given while it is captured. Operations on lazy tensors are recorded
then and given to the device later, so that the graph would have none of them, and what was pending
before would be in it. So that is given to the device first, and an operation that would be recorded
raises where it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def _note(capturing: bool) -> None:
    from torch_lazy import _C

    # Without a lazy tensor there is nothing to submit or refuse, and nothing is to be started.
    if _C.chosen_execution_device():
        _C.set_capturing(capturing)


def _begins(capture_begin: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(capture_begin)
    def function(*args: Any, **kwargs: Any) -> None:
        _note(True)
        try:
            capture_begin(*args, **kwargs)
        except BaseException:
            _note(False)
            raise

    return function


def _ends(capture_end: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(capture_end)
    def function(*args: Any, **kwargs: Any) -> None:
        try:
            capture_end(*args, **kwargs)
        finally:
            _note(False)

    return function


def install() -> None:
    """Wraps the methods by which all captures begin and end; call once."""
    graph = torch.cuda.CUDAGraph
    graph.capture_begin = _begins(graph.capture_begin)  # type: ignore[method-assign]
    graph.capture_end = _ends(graph.capture_end)  # type: ignore[method-assign]
