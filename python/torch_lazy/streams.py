"""Streams and events, with the habits of ``torch.cuda``.

On the CPU all work of a program runs in its order, so a stream is a name and waiting for one needs
nothing. Where lazy tensors live on another device, streams and events are that device's.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_lazy.device import Device
from torch_lazy.device import device_index as index_of


def _library() -> Any:
    from torch_lazy import _C

    return _C


class Stream(torch.Stream):
    """A stream that a thread can have as its current one; on the CPU a name, which orders nothing.

    ``query`` and ``synchronize`` run all pending work. ``priority`` has no effect. With
    ``stream_id`` it is the stream of that number, else a new one.
    """

    def __new__(
        cls,
        device: Device = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int = 0,
        device_type: int | None = None,
    ) -> Stream:
        """A new stream, or the one of a number."""
        if stream_id is not None:
            return super().__new__(
                cls,
                stream_id=stream_id,
                device_index=index_of(device_index),
                device_type=_library().device_type,
            )
        return super().__new__(cls, device=f"lazy:{index_of(device)}", priority=priority)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records an event, a new one by default, and returns it."""
        if event is None:
            event = Event()
        event.record(self)
        return event

    # PyTorch's make a stream the current one on accelerators only.
    def __enter__(self) -> Stream:
        self._contexts.append(stream(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._contexts.pop().__exit__(*exception)

    @functools.cached_property
    def _contexts(self) -> list[StreamContext]:
        return []

    def __repr__(self) -> str:
        return f"<torch.lazy.Stream device={self.device} stream_id={self.stream_id}>"


class Event(torch.Event):
    """A point in the order of the program.

    With ``enable_timing``, :meth:`record` first runs all pending work: the time between two such
    events is that of the operations between them, and not only of recording them. A loop that
    records events in the middle of what would be one window therefore splits the window. Without,
    it costs nothing on the CPU; ``query`` and ``synchronize`` then run what is pending. On another
    device every event runs what is pending, so that others can wait for it. ``elapsed_time`` is in
    milliseconds.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Event:
        """An event that was not recorded yet."""
        if interprocess:
            raise NotImplementedError(
                "torch.lazy.Event(interprocess=True): device lazy has no events that other "
                "processes can wait for; use torch.multiprocessing.Event"
            )
        return super().__new__(cls, device="lazy", enable_timing=enable_timing, blocking=blocking)

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds from this event to a later one; both have timing and were recorded."""
        return _library().elapsed_time(self, end_event)

    def __repr__(self) -> str:
        return f"<torch.lazy.Event {id(self):#x}>"


class StreamContext:
    """Context in which a stream is the thread's current one; ``None`` changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._before: Stream | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = current_stream(self.stream.device_index)
            set_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            set_stream(self._before)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context in which a stream is the thread's current one; ``None`` changes nothing."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """The current stream of this thread."""
    index = index_of(device)
    return Stream(stream_id=_library().current_stream(index), device_index=index)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current in a thread that has set none."""
    index = index_of(device)
    return Stream(stream_id=_library().default_stream(index), device_index=index)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream the current one of this thread; ``None`` changes nothing."""
    if stream is None:
        return
    if stream.device.type != "lazy":
        raise ValueError(f"expected a stream of device lazy, but got one of {stream.device}")
    _library().set_stream(stream.device_index, stream.stream_id)


def is_current_stream_capturing() -> bool:
    """False: windows are captured and replayed unasked, and that needs no care of the program."""
    return False
