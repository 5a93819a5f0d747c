"""The scope in which operations of the calling thread run at the call, as in eager."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def at_the_call() -> Iterator[None]:
    """Nothing is deferred inside; what was pending before runs as it begins."""
    from torch_lazy import _C

    deferring = _C.set_deferring(False)
    try:
        yield
    finally:
        _C.set_deferring(deferring)
