"""A profile as a page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torch_lazy.profiling.event import Line
from torch_lazy.profiling.findings import findings

if TYPE_CHECKING:
    from torch_lazy.profiling.profile import profile

_ROWS = 12
"""Of each table."""


def describe(of: profile) -> str:
    """Findings, and the longest rows of each table."""
    if not of.end:
        return "torch_lazy profile: it has not ended"
    return "\n".join(_sections(of))


def milliseconds(nanoseconds: int) -> str:
    """``1.234 ms``."""
    return f"{nanoseconds / 1e6:,.3f} ms"


def counted(counts: dict[str, int]) -> str:
    """``8 hot, 1 cold``."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{number:,} {name}" for name, number in ordered)


def _sections(of: profile) -> Iterator[str]:
    summary = of.summary
    yield (
        f"torch_lazy profile: {milliseconds(of.duration)}, windows: "
        f"{counted(summary.states) or 'none'}"
    )
    for finding in findings(of):
        mark = "!" if finding.weight == "cause" else "-"
        yield textwrap.fill(finding.text, 100, initial_indent=f"{mark} ", subsequent_indent="  ")
    shares = summary.shares(of.duration)
    yield from _table(
        "time of the profiled thread",
        [
            (share.name, milliseconds(share.time), _percent(share.time, of.duration))
            for share in shares
        ],
    )
    yield from _table(
        "windows",
        [
            (_at(w.line), f"{w.operations} operations", milliseconds(w.running), counted(w.states))
            for w in summary.windows
        ],
    )
    yield from _table(
        "steps of windows",
        [
            (
                step.name,
                f"{step.runs} x",
                milliseconds(step.time),
                _percent(step.time, summary.running),
                f"{step.rate:.1f} GB/s" if step.rate else "",
                _at(step.lines[0] if step.lines else None),
            )
            for step in summary.steps
        ],
    )
    yield from _table(
        "sync points",
        [(_at(s.line), f"{s.count} x", milliseconds(s.time), s.reason) for s in summary.syncs],
    )


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _at(line: Line | None) -> str:
    return str(line) if line else "unknown line"


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Numbers, which stand from the second column on, are set to the right but for the last."""
    rows = list(rows)
    if not rows:
        return
    shown = rows[:_ROWS]
    widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
    yield f"\n{title}"
    for first, *middle, last in shown:
        cells = [cell.rjust(width) for cell, width in zip(middle, widths[1:-1], strict=True)]
        yield "  " + "  ".join([first.ljust(widths[0]), *cells, last]).rstrip()
    if len(rows) > _ROWS:
        yield f"  and {len(rows) - _ROWS} more"
