"""What the page's timeline draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_lazy.profiling.event import Event

if TYPE_CHECKING:
    from torch_lazy.profiling.profile import profile

_MOST = 20_000
"""Events that a browser draws at ease: the longest ones."""


def data(of: profile) -> dict[str, Any]:
    """Threads with their events, as JSON.

    Each event is ``[kind, name, begin, duration, depth, place]``: numbers in ``kinds`` and
    ``names``, microseconds, how many others it lies in, and a number in ``places``.
    """
    names, places, kinds = _Table(), _Table(), _Table()
    longest = sorted(of.events, key=lambda event: event.duration, reverse=True)
    by_thread: dict[int, list[Event]] = {}
    for event in longest[:_MOST]:
        by_thread.setdefault(event.thread, []).append(event)
    threads = []
    for thread in sorted(by_thread, key=lambda number: (number != of.thread, number)):
        drawn = [
            [
                kinds[_kind(event)],
                names[event.title],
                (event.begin - of.begin) / 1000,
                event.duration / 1000,
                depth,
                places[_place(event)],
            ]
            for event, depth in _with_depth(by_thread[thread])
        ]
        threads.append({"name": of.thread_names.get(thread, f"thread {thread}"), "events": drawn})
    return {
        "threads": threads,
        "kinds": kinds.entries,
        "names": names.entries,
        "places": places.entries,
        "duration": of.duration / 1000,
        "left_out": max(0, len(of.events) - _MOST),
    }


class _Table:
    """Numbers strings as they come."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._numbers: dict[str, int] = {}

    def __getitem__(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.entries))
        if number == len(self.entries):
            self.entries.append(text)
        return number


def _with_depth(events: list[Event]) -> list[tuple[Event, int]]:
    """Windows have a row of their own, which is depth -1: they end in the middle of a flush."""
    placed = []
    open_ends: list[int] = []
    for event in sorted(events, key=lambda event: (event.begin, -event.end)):
        if event.kind == "window":
            placed.append((event, -1))
            continue
        while open_ends and open_ends[-1] <= event.begin:
            open_ends.pop()
        placed.append((event, len(open_ends)))
        open_ends.append(event.end)
    return placed


def _kind(event: Event) -> str:
    return event.name if event.kind == "window" else event.kind


def _place(event: Event) -> str:
    shown = [f"{line}  {line.source}" for line in event.lines[:4]]
    shown += ["…"] * (len(event.lines) > 4)
    return "\n".join([*shown, event.name] if event.kind == "guard failure" else shown)
