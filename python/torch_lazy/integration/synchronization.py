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


def _after_submitting(
    original: Callable[..., Any], submit: Callable[..., None], *, waits: bool
) -> Callable[..., Any]:
    """The function, with what is pending submitted before, by ``submit``, called as it is.

    ``waits`` where the host then waits for the device, and hears what went wrong there.
    """

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        submit(*args, **kwargs)
        result = original(*args, **kwargs)
        if waits:
            _library().raise_failures_of_device()
        return result

    return function


def _all(*args: Any, **kwargs: Any) -> None:
    _library().submit_to_device()


def _of_streams(*streams: Any, **named: Any) -> None:
    """Of the streams among the arguments: other threads may be recording for others."""
    for stream in (*streams, *named.values()):
        if hasattr(stream, "stream_id"):
            _library().submit_to_stream((stream.device_index, stream.stream_id))


def _of_stream_or_current(event: Any, stream: Any = None) -> None:
    if stream is None:
        _library().submit_to_stream()
    else:
        _of_streams(stream)


# PyTorch's types for any device, and CUDA's, which go their own way; what is written in Python
# calls these. Methods by which only the device waits are among them, to keep the program's order.
# What an event stands for was submitted when it was recorded.
_STREAMS = ("Stream", "_CudaStreamBase")
_OF_STREAMS = {
    "query": False,
    "synchronize": True,
    "record_event": False,
    "wait_event": False,
    "wait_stream": False,
}
_EVENTS = ("Event", "_CudaEventBase")
_FUNCTIONS = ("_cuda_synchronize", "_accelerator_synchronizeDevice")


def _replace(types: tuple[str, ...], methods: dict[str, bool], submit: Callable[..., None]) -> None:
    for kind in (getattr(torch._C, name) for name in types if hasattr(torch._C, name)):
        for name in methods.keys() & vars(kind).keys():
            method = _after_submitting(vars(kind)[name], submit, waits=methods[name])
            _library().replace_method(kind, name, method)


def install() -> None:
    """Replaces the methods of streams and events, and the functions that wait; call once."""
    _replace(_STREAMS, _OF_STREAMS, _of_streams)
    _replace(_EVENTS, {"record": False, "wait": False}, _of_stream_or_current)
    _replace(_EVENTS, {"synchronize": True}, lambda event: None)
    for name in _FUNCTIONS:
        if hasattr(torch._C, name):
            waiting = _after_submitting(getattr(torch._C, name), _all, waits=True)
            setattr(torch._C, name, waiting)
