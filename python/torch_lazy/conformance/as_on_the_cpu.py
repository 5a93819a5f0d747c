"""Requires of a piece of code that it gives on the device what eager gives on the CPU, from the
first, recorded run to the deferred ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

import torch_lazy
from torch_lazy.conformance.opinfo import difference
from torch_lazy.conformance.program_runner import REPETITIONS
from torch_lazy.conformance.section import require


def finish() -> None:
    """Ends the window, and makes the next one hot if it can be."""
    torch_lazy.synchronize()
    torch_lazy.wait_for_compiles()


def require_same(actual: Any, expected: Any, where: str = "") -> None:
    """Structures of tensors and numbers agree: dtypes, sizes, strides, and values within
    rounding."""
    ours, cpus = tree_flatten(actual)[0], tree_flatten(expected)[0]
    require(len(ours) == len(cpus), f"{where}{len(ours)} results, expected {len(cpus)}")
    for i, (a, e) in enumerate(zip(ours, cpus, strict=True)):
        if isinstance(e, float):
            a, e = (torch.tensor(value, dtype=torch.float32) for value in (a, e))
        reason = difference(a, e)
        require(reason is None, f"{where}result {i}: {reason}")


def require_as_on_the_cpu(
    make: Callable[[str], Callable[[], Any]], runs: int = REPETITIONS
) -> None:
    """`make(device)` makes what the code keeps between its runs, and returns the code."""
    steps = []
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        steps.append(make(device))
    for run in range(runs):
        results = []
        for step in steps:
            torch.manual_seed(run)
            results.append(step())
        require_same(results[1], results[0], f"run {run + 1}: ")
        results.clear()
        finish()


def stateless(step: Callable[[str], Any]) -> Callable[[str], Callable[[], Any]]:
    """For code that keeps nothing between its runs."""
    return lambda device: lambda: step(device)
