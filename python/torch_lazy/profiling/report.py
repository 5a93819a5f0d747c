"""A profile as one page of HTML, which needs nothing beside it."""

from __future__ import annotations

import datetime
import os
import sys
from typing import TYPE_CHECKING, Any

import torch

from torch_lazy.config import config
from torch_lazy.graphs import Graph
from torch_lazy.profiling import timeline
from torch_lazy.profiling.event import Line
from torch_lazy.profiling.findings import count, findings

if TYPE_CHECKING:
    from torch_lazy.profiling.profile import profile

_MOST_PICTURES = 12
"""Of the windows that take the most time."""
_MOST_DRAWN = 300
"""Operations: a picture of more is no picture any more, and takes graphviz seconds."""
_MOST_POINTS = 400
"""Of the curve of memory."""


def write(of: profile, path: str | os.PathLike[str]) -> None:
    """Writes the page to a file."""
    # Here, because PyTorch needs it for compiling only, and a program may be without.
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("torch_lazy.profiling", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters.update(time=time_text, bytes=bytes_text, percent=percent_text)
    templates.globals.update(count=count, full_path=_full_path)
    page = templates.get_template("report.html").render(_context(of))
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def time_text(nanoseconds: int) -> str:
    """``1.23 ms``: three digits that count."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if nanoseconds >= size:
            digits = 2 if nanoseconds < 10 * size else 1 if nanoseconds < 100 * size else 0
            return f"{nanoseconds / size:,.{digits}f} {unit}"
    return f"{nanoseconds} ns"


def bytes_text(size: int) -> str:
    """``1.5 MiB``."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size} B"


def percent_text(part: int, whole: int) -> str:
    """``12.3 %``; nothing where there is no whole."""
    return f"{100 * part / whole:.1f} %" if whole else ""


def _full_path(line: Line) -> str:
    where = f"{line.file}:{line.line}"
    return f"{where} in {line.function}" if line.function else where


def _context(of: profile) -> dict[str, Any]:
    from torch_lazy import __version__

    return {
        "profile": of,
        "summary": of.summary,
        "findings": findings(of),
        "shares": of.summary.shares(of.duration),
        "title": os.path.basename(sys.argv[0]) or "interactive session",
        "made": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
        "versions": {
            "torch_lazy": __version__,
            "PyTorch": torch.__version__,
            "backend": config.backend,
            "threads": torch.get_num_threads(),
        },
        "timeline": timeline.data(of),
        "graphs": _pictures(of),
        "memory": _memory(of),
    }


def _pictures(of: profile) -> list[dict[str, Any]]:
    """Of the graphs that the longest windows followed."""
    pictures: dict[str, dict[str, Any]] = {}
    for window in of.summary.windows:
        graph = of.graphs.get(window.graph)
        if graph and graph.hash not in pictures and len(pictures) < _MOST_PICTURES:
            pictures[graph.hash] = {"window": window, "graph": graph, **_drawn(graph)}
    return list(pictures.values())


def _drawn(graph: Graph) -> dict[str, str]:
    """The picture as ``svg``; empty, and ``why_not``, where there is none."""
    operations = graph.text.count("= aten::")
    if operations > _MOST_DRAWN:
        return {"svg": "", "why_not": f"{operations} operations are too many for a picture."}
    try:
        drawing = graph.svg()
    except RuntimeError as error:
        return {"svg": "", "why_not": f"{str(error)[0].upper()}{str(error)[1:]}."}
    return {"svg": drawing[drawing.index("<svg") :]}


def _memory(of: profile) -> dict[str, Any]:
    """The curve of what was in use when windows had ended, as points of a path."""
    samples = [(e.end - of.begin, e.bytes) for e in of.events if e.kind == "window" and e.bytes]
    if not samples:
        return {}
    samples = samples[:: max(1, len(samples) // _MOST_POINTS)]
    most = max(used for _, used in samples)
    points = [
        f"{1000 * at / max(of.duration, 1):.1f},{100 - 96 * used / most:.1f}"
        for at, used in samples
    ]
    return {"most": most, "points": " ".join(points), "last": samples[-1][1]}
