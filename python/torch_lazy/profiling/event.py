"""One thing that happened during a profile."""

from __future__ import annotations

import linecache
import os
from typing import Literal, NamedTuple

Kind = Literal[
    "sync",
    "flush",
    "run",
    "kernel",
    "library call",
    "command",
    "copy",
    "check",
    "compile",
    "guard failure",
    "window",
]

STEPS: tuple[Kind, ...] = ("kernel", "library call", "command", "copy", "check")
"""What a run consists of."""


class Line(NamedTuple):
    """A place in the program."""

    file: str
    line: int
    """Counted from 1."""
    column: int
    """Bytes from the start of the line; -1 where Python keeps no columns."""
    function: str

    @property
    def source(self) -> str:
        """The text of the line, empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.line else self.file


class Event(NamedTuple):
    """One thing that happened. What holds of which kind stands in ``csrc/profile/event.h``."""

    kind: Kind
    name: str
    """Of a kernel or an operator; the reason of a sync or a flush; the state of a window."""
    begin: int
    """Nanoseconds of ``time.monotonic_ns``."""
    end: int
    thread: int
    """As the system numbers it: ``threading.Thread.native_id``."""
    lines: tuple[Line, ...]
    """Of its operations, each once; of a sync the line that waited."""
    operations: int
    """Recorded operations of a window, a run or a compile."""
    bytes: int
    """That a step moves, 0 where it is not known; in use when a window had ended."""
    reason: str
    """Why a window was flushed."""
    graph: str
    """Hash of the graph that a window followed, as :func:`torch.lazy.graphs` has it; or empty."""

    @property
    def duration(self) -> int:
        """Nanoseconds."""
        return self.end - self.begin

    @property
    def line(self) -> Line | None:
        """The first of its lines, if any is known."""
        return self.lines[0] if self.lines else None

    @property
    def title(self) -> str:
        """What a timeline calls it."""
        at = f" ({self.line})" if self.line else ""
        if self.kind in ("sync", "flush"):
            return f"{self.kind}: {self.name}"
        if self.kind == "window":
            return f"{self.name} window{at}, flushed by {self.reason}"
        if self.kind == "compile":
            return f"compile{at}"
        if self.kind == "guard failure":
            return "guard failed"  # the name says why, in a long sentence
        return self.name.replace("_", " ") + at if self.kind == "run" else self.name
