"""The context in which a program is profiled."""

from __future__ import annotations

import functools
import os
import threading
import time
from types import TracebackType
from typing import Any

from torch_lazy.graphs import Graph, graphs
from torch_lazy.metrics import metrics
from torch_lazy.profiling import chrome_trace, report, text
from torch_lazy.profiling.event import Event, Line
from torch_lazy.profiling.summary import Summary
from torch_lazy.sync import synchronize


class profile:
    """Profiles all threads of the process while it is entered.

    ::

        with torch.lazy.profile() as p:
            for batch in batches:
                step(batch)
        print(p)  # a page of text
        p.report("profile.html")  # the same with a timeline and pictures, for a browser
        p.chrome_trace("profile.json")  # for Perfetto

    What is pending when it is entered runs before, and what is pending when it is left runs within.
    Steps of windows are timed one by one, and on a device that runs behind the host each is waited
    for; recording costs what it does without. A profile is of a process as it is: enter one after
    some steps to see what hot windows do, and at the start to see how they become hot.

    One can be on at a time, and each is entered once; ``RuntimeError`` is raised otherwise.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        """In the order in which they ended; at most a million."""
        self.left_out = 0
        """Events that came after these."""
        self.begin = self.end = 0
        """Nanoseconds of ``time.monotonic_ns``."""
        self.thread = 0
        """The thread that entered it, as the system numbers it."""
        self.thread_names: dict[int, str] = {}
        self.counters: dict[str, Any] = {}
        """What :func:`torch.lazy.metrics` counted meanwhile."""
        self.memory: dict[str, int] = {}
        """What :func:`torch.lazy.memory_stats` says of the CPU, at the end."""

    def __enter__(self) -> profile:
        from torch_lazy import _C

        if self.begin:
            raise RuntimeError("this torch.lazy.profile() was entered before: make another one")
        synchronize()
        self.thread = threading.get_native_id()
        self._counters_before = metrics()
        self.begin = time.monotonic_ns()
        _C.start_profile()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            synchronize()
        except Exception:
            if error is None:  # what the program raised itself came first
                raise
        finally:
            self._stop()

    def _stop(self) -> None:
        from torch_lazy import _C

        self.end = time.monotonic_ns()
        events, self.left_out = _C.stop_profile()
        self.events = [self._event(fields) for fields in events]
        self.counters = _difference(metrics(), self._counters_before)
        self.memory = _C.memory_stats()
        self.thread_names = {
            thread.native_id: thread.name
            for thread in threading.enumerate()
            if thread.native_id is not None
        }
        for event in self.events:
            if event.kind == "compile":
                self.thread_names[event.thread] = "compiles"

    def _event(self, fields: tuple[Any, ...]) -> Event:
        event = Event(*fields)
        lines = tuple(Line(*line) for line in event.lines)
        # What began before the profile is shown from its beginning.
        return event._replace(begin=max(event.begin, self.begin), lines=lines)

    @property
    def duration(self) -> int:
        """Nanoseconds from its beginning to its end."""
        return self.end - self.begin

    @functools.cached_property
    def summary(self) -> Summary:
        """Windows, steps, sync points and the like, added up."""
        return Summary(self.events, self.thread)

    @functools.cached_property
    def graphs(self) -> dict[str, Graph]:
        """The graphs that its windows followed, by hash, as they are kept when this is read."""
        wanted = {event.graph for event in self.events}
        return {graph.hash: graph for graph in graphs() if graph.hash in wanted}

    def chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace of events for Perfetto or ``chrome://tracing``."""
        chrome_trace.write(self, path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one page of HTML that needs nothing beside it.

        Pictures of graphs are drawn by graphviz' program ``dot``; without it their text is shown.
        """
        report.write(self, path)

    def __str__(self) -> str:
        return text.describe(self)


def _difference(after: Any, before: Any) -> Any:
    """Of counters and of dictionaries and lists of them; of counters that were reset, all."""
    if isinstance(after, dict):
        before = before if isinstance(before, dict) else {}
        found = {key: _difference(value, before.get(key)) for key, value in after.items()}
        return {key: value for key, value in found.items() if value != 0 or key not in before}
    if isinstance(after, list):
        return [entry for entry in after if entry not in (before or [])]
    if isinstance(after, int):
        return after - before if isinstance(before, int) and before <= after else after
    return after
