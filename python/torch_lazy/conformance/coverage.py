"""Who ran what, as torch.lazy.metrics() tells it: the backend, ATen on the device, or the CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch_lazy

# How metrics()["fallbacks"] ends the name of an operator that a compiled window leaves to others.
_LEFT_TO = {" by ATen": "ATen on the device", " on the CPU": "the CPU"}
# There, windows that the backend did not compile.
_NOT_COMPILED = ("window not compiled", "compile failed", "compile takes long")

COMPILED = "compiled"
IN_PART = "compiled in part"
NOT_COMPILED = "not compiled"
AT_THE_CALL = "at the call"


def forget_compiled(backend: str) -> None:
    """What is repeated from now on is compiled anew, so that it is counted."""
    if backend != "reference":
        torch_lazy.set_backend("reference")
        torch_lazy.set_backend(backend)


def not_compiled(fallbacks: Mapping[str, int]) -> dict[str, int]:
    """Counts of windows that the backend left as a whole."""
    return {name: fallbacks[name] for name in _NOT_COMPILED if name in fallbacks}


def who_ran(metrics: Mapping[str, Any], compiled: bool) -> dict[str, Any]:
    """How an operator ran, of whose windows `metrics` were counted, and what those that were
    compiled left to others. `compiled`: it stands in windows at all."""
    fallbacks = metrics["fallbacks"]
    left = {}
    for counted in fallbacks:
        for ending, where in _LEFT_TO.items():
            if counted.endswith(ending):
                left[counted.removesuffix(ending)] = where
    if not compiled:
        how = AT_THE_CALL
    elif not_compiled(fallbacks):
        how = NOT_COMPILED
    else:
        how = IN_PART if left else COMPILED
    return {"how": how, "left": left}


def bytes_moved(metrics: Mapping[str, Any]) -> dict[str, int]:
    """Between the host and a device that has no kernels of PyTorch's, by direction and cause."""
    return dict(metrics["bytes_moved"])


def needed_by(ran: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """What `who_ran` said of several operators, by who was left what: the operator of the graph,
    where it runs, and what needs it; what most need comes first."""
    counts: Counter[tuple[str, str]] = Counter()
    users: dict[tuple[str, str], list[str]] = {}
    for name, told in ran.items():
        for operator, where in told["left"].items():
            counts[operator, where] += 1
            users.setdefault((operator, where), []).append(name)
    return [(*key, users[key]) for key, _ in sorted(counts.items(), key=lambda i: (-i[1], i[0]))]
