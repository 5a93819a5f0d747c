"""Random tensor programs as data: statements that run on any device, on equal or on changing data.

A statement refers to `device`, and to `run`, the number of the repetition. `torch.float` and
`torch.cfloat` are the dtypes of drawn numbers; every other floating dtype becomes a double's in the
double version of a program (`in_double`), which so computes with the same numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

import torch_lazy

LAZY = "lazy"


@dataclass(frozen=True)
class Step:
    """One statement. `may_fail` marks operators that can fail on their data, so on a deferring
    device late."""

    code: str
    may_fail: bool = False


@dataclass(frozen=True)
class Bound:
    """How far a value may lie from the CPU's: `tolerance` times the largest element, or times
    `scale` if that is more."""

    tolerance: float
    scale: float = 0.0


@dataclass(frozen=True)
class Program:
    """`steps`, and a second tail that leaves them at `branch_at`: the changed branch of a later
    run. `bounds` are those of variables at the end, where the generator knows them. A program that
    `compiles` has to run as compiled code alone, once it is hot."""

    seed: int
    steps: tuple[Step, ...]
    branch_at: int = 0
    branch_tail: tuple[Step, ...] = ()
    bounds: dict[str, Bound] = field(default_factory=dict)
    compiles: bool = False

    @property
    def branch(self) -> tuple[Step, ...]:
        return self.steps[: self.branch_at] + self.branch_tail


def oracle_of(device: str) -> str:
    """The device on which eager says what is right: CUDA, where lazy tensors live there, whose own
    kernels draw, round and refuse otherwise than the CPU's. Another device need not have any."""
    lives_on_cuda = device.startswith(LAZY) and torch_lazy.execution_device().type == "cuda"
    return "cuda" if lives_on_cuda and torch.version.cuda else "cpu"


def synchronize(device: str) -> None:
    """Runs what is pending, where the device is one that defers."""
    if device.startswith(LAZY):
        torch_lazy.synchronize()


def wait_for_compiles(device: str) -> None:
    """Makes the next repetition hot for certain, where the device is one that defers."""
    if device.startswith(LAZY):
        torch_lazy.wait_for_compiles()


def namespace(
    device: str, run: int, observe: Callable[[Any], None], check: Callable[[], None]
) -> dict[str, Any]:
    """What the statements of a program can name besides their own variables."""
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "G": lambda seed: torch.Generator().manual_seed(seed),
        "device": device,
        "run": run,
        "observe": observe,
        "check": check,
        "synchronize": lambda: synchronize(device),
    }


def variables(names: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The live tensors: v* lie on the device under test, c* on the CPU."""
    return {
        k: v
        for k, v in names.items()
        if k[0] in "vc" and k[1:].isdigit() and isinstance(v, torch.Tensor)
    }


@functools.lru_cache(maxsize=4096)
def compiled(code: str) -> CodeType:
    """The code object of a statement; its file name tells where an error was recorded."""
    return compile(code, "<program>", "exec")


_IN_DOUBLE = (  # a view as another dtype is one of bits: it stays
    (re.compile(r"(?<!view\()torch\.(float32|float16|bfloat16)\b"), "torch.float64"),
    (re.compile(r"(?<!view\()torch\.complex64\b"), "torch.complex128"),
)
# They draw other numbers in double.
_DRAWS_IN_PLACE = re.compile(r"\.(uniform_|normal_)\(")


def in_double(steps: Sequence[Step]) -> list[Step]:
    """The statements with doubles in the place of all floats, up to one that has no such form."""
    result = []
    for step in steps:
        if _DRAWS_IN_PLACE.search(step.code):
            break
        code = step.code
        for pattern, name in _IN_DOUBLE:
            code = pattern.sub(name, code)
        result.append(Step(code, step.may_fail))
    return result
