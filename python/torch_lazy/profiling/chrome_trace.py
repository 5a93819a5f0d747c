"""A profile as a Chrome trace, which Perfetto shows.

The format is described at https://perfetto.dev/docs/getting-started/other-formats.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch_lazy.profiling.event import Event

if TYPE_CHECKING:
    from torch_lazy.profiling.profile import profile


def write(of: profile, path: str | os.PathLike[str]) -> None:
    """Writes the trace to a file."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "traceEvents": list(_trace(of))}, file)


def _trace(of: profile) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    yield _metadata("process_name", process, 0, "torch_lazy")
    for thread in sorted({event.thread for event in of.events}):
        name = of.thread_names.get(thread, f"thread {thread}")
        yield _metadata("thread_name", process, thread, name)
    for number, event in enumerate(of.events):
        for entry in _entries(event, number):
            microseconds = (entry.pop("at") - of.begin) / 1000
            yield {"pid": process, "tid": event.thread, "ts": microseconds, **entry}


def _metadata(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _entries(event: Event, number: int) -> Iterator[dict[str, Any]]:
    if event.kind == "window":
        # A window ends in the middle of its flush, so it is no slice of its thread.
        ends = {"cat": "windows", "id": number, "name": event.title}
        yield {**ends, "ph": "b", "at": event.begin, "args": _arguments(event)}
        yield {**ends, "ph": "e", "at": event.end}
        used = {"MiB": event.bytes / 2**20}
        yield {"name": "memory in use", "ph": "C", "at": event.end, "args": used}
    elif event.kind == "guard failure":
        marked = {"name": event.title, "cat": event.kind, "ph": "i", "s": "t"}
        yield {**marked, "at": event.begin, "args": {**_arguments(event), "why": event.name}}
    else:
        slice = {"name": event.title, "cat": event.kind, "ph": "X", "dur": event.duration / 1000}
        yield {**slice, "at": event.begin, "args": _arguments(event)}


def _arguments(event: Event) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if event.lines:
        arguments["lines"] = [f"{line.file}:{line.line}  {line.source}" for line in event.lines]
    if event.operations:
        arguments["operations"] = event.operations
    if event.bytes and event.kind != "window":
        arguments["bytes"] = event.bytes
        arguments["GB/s"] = round(event.bytes / max(event.duration, 1), 2)
    if event.reason:
        arguments["flushed by" if event.kind == "window" else "reason"] = event.reason
    if event.graph:
        arguments["graph"] = event.graph
    return arguments
