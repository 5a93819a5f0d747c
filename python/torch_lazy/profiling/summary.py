"""The events of a profile, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from torch_lazy.profiling.event import STEPS, Event, Kind, Line

_Line = TypeVar("_Line", Line, "Line | None")


@dataclass
class Window:
    """Windows that begin at one line with equally many operations."""

    line: Line | None
    operations: int
    states: Counter[str] = field(default_factory=Counter)
    """How often each: cold, warm, hot, guard failed."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why they were flushed."""
    running: int = 0
    """Nanoseconds in which their deferred operations ran."""
    at_the_call: int = 0
    """Nanoseconds from the first operation to the flush, of those that deferred nothing: Python's
    time among them."""
    graphs: Counter[str] = field(default_factory=Counter)
    """Hashes of the graphs that the hot ones followed: one for each pattern of shapes."""

    @property
    def count(self) -> int:
        """How many."""
        return self.states.total()

    @property
    def graph(self) -> str:
        """Hash of the graph that most of them followed; empty where none was hot."""
        return self.graphs.most_common(1)[0][0] if self.graphs else ""


@dataclass
class Step:
    """Runs of one kernel or library call on behalf of the same lines."""

    kind: Kind
    name: str
    lines: tuple[Line, ...]
    runs: int = 0
    time: int = 0
    """Nanoseconds."""
    bytes: int = 0

    @property
    def rate(self) -> float | None:
        """Bytes a nanosecond, which is GB/s; ``None`` where bytes are not known."""
        return self.bytes / self.time if self.bytes and self.time else None


@dataclass
class SyncPoint:
    """Waits for one reason at one line."""

    reason: str
    line: Line | None
    count: int = 0
    time: int = 0
    """Nanoseconds, what ran meanwhile among them."""


@dataclass
class GuardFailure:
    """Recordings that left the known traces in the same way."""

    why: str
    line: Line | None
    count: int = 0


@dataclass
class Share:
    """A part of the time of the thread that entered the profile."""

    name: str
    time: int
    """Nanoseconds."""


class Summary:
    """What a profile shows, the most time first."""

    def __init__(self, events: list[Event], thread: int) -> None:
        self.windows = _windows(events)
        self.steps = _steps(events)
        self.syncs = _syncs(events)
        self.guard_failures = _guard_failures(events)
        self.compiles = sorted(_of(events, "compile"), key=lambda event: event.begin)
        self.states = Counter(event.name for event in _of(events, "window"))
        """Windows by their state, as ``metrics()["windows"]`` counts them."""
        self.flushes = Counter(event.reason for event in _of(events, "window"))
        """Windows by why they were flushed."""
        self.running = sum(event.duration for event in _of(events, "run"))
        """Nanoseconds in which deferred operations ran, of all threads."""
        self._own = [event for event in events if event.thread == thread]

    def shares(self, duration: int) -> list[Share]:
        """Where the time of the thread that entered the profile went; they add up to all of it."""
        by_kind = {kind: sum(e.duration for e in _of(self._own, kind)) for kind in STEPS}
        running = sum(event.duration for event in _of(self._own, "run"))
        shares = [
            Share("kernels", by_kind["kernel"] + by_kind["command"]),
            Share("library calls", by_kind["library call"]),
            Share("copies and checks", by_kind["copy"] + by_kind["check"]),
            Share("between steps", max(0, running - sum(by_kind.values()))),
        ]
        known = sum(share.time for share in shares)
        return [*shares, Share("Python, recording, eager operations", max(0, duration - known))]


def _of(events: Iterable[Event], *kinds: str) -> list[Event]:
    return [event for event in events if event.kind in kinds]


def _whole_line(line: _Line) -> _Line:
    """What stands on one line is added up."""
    return line and line._replace(column=-1)


def _windows(events: list[Event]) -> list[Window]:
    windows: dict[tuple[Line | None, int], Window] = {}
    running: Counter[int] = Counter()  # by thread, since its latest window ended
    for event in events:  # a window ends after its runs, on the thread that ran them
        if event.kind == "run":
            running[event.thread] += event.duration
        elif event.kind == "window":
            key = (_whole_line(event.line), event.operations)
            window = windows.setdefault(key, Window(*key))
            window.states[event.name] += 1
            window.reasons[event.reason] += 1
            window.running += running.pop(event.thread, 0)
            if event.name in ("cold", "warm"):
                window.at_the_call += event.duration
            if event.graph:
                window.graphs[event.graph] += 1
    return sorted(windows.values(), key=lambda w: (w.running, w.at_the_call), reverse=True)


def _steps(events: list[Event]) -> list[Step]:
    steps: dict[tuple[str, str, tuple[Line, ...]], Step] = {}
    for event in _of(events, *STEPS):
        lines = tuple(dict.fromkeys(_whole_line(line) for line in event.lines))
        step = steps.setdefault(
            (event.kind, event.name, lines), Step(event.kind, event.name, lines)
        )
        step.runs += 1
        step.time += event.duration
        step.bytes += event.bytes
    return sorted(steps.values(), key=lambda step: step.time, reverse=True)


def _syncs(events: list[Event]) -> list[SyncPoint]:
    syncs: dict[tuple[str, Line | None], SyncPoint] = {}
    for event in _of(events, "sync"):
        line = _whole_line(event.line)
        sync = syncs.setdefault((event.name, line), SyncPoint(event.name, line))
        sync.count += 1
        sync.time += event.duration
    return sorted(syncs.values(), key=lambda sync: sync.time, reverse=True)


def _guard_failures(events: list[Event]) -> list[GuardFailure]:
    failures: dict[str, GuardFailure] = {}
    for event in _of(events, "guard failure"):
        failures.setdefault(event.name, GuardFailure(event.name, event.line)).count += 1
    return sorted(failures.values(), key=lambda failure: failure.count, reverse=True)
