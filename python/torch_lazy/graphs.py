"""The graphs that known traces became."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Graph:
    """One compiled window."""

    text: str
    """TorchScript, with the Python line of each operation behind ``#``."""
    hash: str
    """Structural 128-bit hash, in hexadecimal digits."""
    dot: str
    """Source of the picture in graphviz' language."""

    def svg(self) -> str:
        """The picture: operators as nodes, shapes on the edges.

        Raises ``RuntimeError`` when graphviz' program ``dot`` is not installed.
        """
        if shutil.which("dot") is None:
            raise RuntimeError(
                "drawing a graph needs graphviz' program `dot`, which is not on the PATH: "
                "install the Debian package graphviz, or use Graph.dot elsewhere"
            )
        done = subprocess.run(
            ["dot", "-Tsvg"], input=self.dot, capture_output=True, text=True, check=True
        )
        return done.stdout

    def __str__(self) -> str:
        return self.text


def graphs() -> list[Graph]:
    """Every graph that is compiled, as it runs now."""
    from torch_lazy import _C

    graphs = [Graph(**graph) for graph in _C.graphs()]
    return list({graph.hash: graph for graph in graphs}.values())
