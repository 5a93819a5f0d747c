"""Who waits for the device that lazy tensors live on, waits for what is pending.

``torch.cuda.synchronize()``, streams and events know what was submitted to the device, and pending
work was not. So it is submitted before PyTorch asks the device anything: ``start; model(x);
torch.cuda.synchronize(); stop`` measures the model, and a stream that waits for another's event
waits for the operations that the program called before. Where lazy tensors live on the CPU, none of
this does anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


@functools.cache
def _library() -> ModuleType:
    from torch_lazy import _C

    return _C


def _after_submitting(original: Callable[..., Any], *, waits: bool) -> Callable[..., Any]:
    """The function, with what is pending submitted before.

    ``waits`` where the host then waits for the device, and hears what went wrong there.
    """

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        library = _library()
        library.submit_to_device()
        result = original(*args, **kwargs)
        if waits:
            library.raise_failures_of_device()
        return result

    return function


# PyTorch's types for any device, and CUDA's, which go their own way; what is written in Python
# calls these. Methods by which only the device waits are among them, to keep the program's order.
_TYPES = ("Stream", "Event", "_CudaStreamBase", "_CudaEventBase")
_METHODS = {
    "query": False,
    "synchronize": True,
    "record": False,
    "record_event": False,
    "wait": False,
    "wait_event": False,
    "wait_stream": False,
}
_FUNCTIONS = ("_cuda_synchronize", "_accelerator_synchronizeDevice")


def install() -> None:
    """Replaces the methods of streams and events, and the functions that wait; call once."""
    for kind in (getattr(torch._C, name) for name in _TYPES if hasattr(torch._C, name)):
        for name in _METHODS.keys() & vars(kind).keys():
            method = _after_submitting(vars(kind)[name], waits=_METHODS[name])
            _library().replace_method(kind, name, method)
    for name in _FUNCTIONS:
        if hasattr(torch._C, name):
            setattr(torch._C, name, _after_submitting(getattr(torch._C, name), waits=True))
