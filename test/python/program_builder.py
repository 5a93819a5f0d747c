"""Random tensor programs as data, and the builder that grows one statement by statement.

The builder runs every statement on the CPU while it generates, so that the next one can be chosen
by the shapes, strides and dtypes that exist at that point. A statement refers to `device` and to
`run` (the number of the repetition), so the same program runs anywhere, on equal or on changing
data.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

MAX_ELEMENTS = 2048
MAX_LIVE = 14


@dataclass(frozen=True)
class Step:
    """One statement. `may_fail` marks operators that can fail on their data, so on a deferring
    device late."""

    code: str
    may_fail: bool = False


@dataclass(frozen=True)
class Program:
    """`steps`, and a second tail that leaves them at `branch_at`: the changed branch of a later
    run."""

    seed: int
    steps: tuple[Step, ...]
    branch_at: int = 0
    branch_tail: tuple[Step, ...] = ()

    @property
    def branch(self) -> tuple[Step, ...]:
        return self.steps[: self.branch_at] + self.branch_tail


@functools.lru_cache(maxsize=4096)
def compiled(code: str) -> CodeType:
    """The code object of a statement; its file name tells where an error was recorded."""
    return compile(code, "<program>", "exec")


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
    }


def variables(names: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The live tensors: v* lie on the device under test, c* on the CPU."""
    return {
        k: v
        for k, v in names.items()
        if k[0] in "vc" and k[1:].isdigit() and isinstance(v, torch.Tensor)
    }


@dataclass
class Builder:
    """The state of one generation: random stream, statements so far, their CPU results."""

    seed: int
    allow_errors: bool = True  # False for programs that are timed
    changing: bool = False  # input values depend on the repetition
    steps: list[Step] = field(default_factory=list)
    errors_left: int = 3
    fatal_left: int = 1

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.counter = 0
        self.names = self._fresh()

    # ---- choosing -------------------------------------------------------------------------------

    def new(self, prefix: str = "v") -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def live(
        self, want: Callable[[torch.Tensor], bool] | None = None, prefix: str = "v"
    ) -> list[str]:
        def wanted(t: torch.Tensor) -> bool:
            try:
                return want is None or bool(want(t))
            except (
                RuntimeError
            ):  # even `grad_fn` raises on a view that a write to its base made invalid
                return False

        return [k for k, t in variables(self.names).items() if k[0] == prefix and wanted(t)]

    def pick(
        self, want: Callable[[torch.Tensor], bool] | None = None, prefix: str = "v"
    ) -> str | None:
        """A live variable that satisfies `want`; younger ones are likelier, so that chains grow."""
        names = self.live(want, prefix)
        if not names:
            return None
        return self.rng.choice(names[-5:] if self.chance(0.6) else names)

    def at(self, name: str) -> torch.Tensor:
        return self.names[name]

    def dim(self, t: torch.Tensor) -> int:
        return self.rng.randrange(-t.dim(), t.dim()) if t.dim() else 0

    def scalar(self, t: torch.Tensor) -> str:
        if t.is_floating_point() or self.chance(0.15):
            return self.rng.choice(["0.5", "-1.25", "2", "3.0", "1", "-0.75", "1e-3"])
        return self.rng.choice(["1", "2", "-3", "7"])

    def partner(self, x: str, into: bool = False) -> str:
        """An operand for `x`: a variable that broadcasts with it (or into it), or a number."""
        shape = self.at(x).shape

        def fits(t: torch.Tensor) -> bool:
            try:
                out = torch.broadcast_shapes(shape, t.shape)
            except RuntimeError:
                return False
            return out == shape if into else out.numel() <= MAX_ELEMENTS

        if self.chance(0.3):
            return self.scalar(self.at(x))
        if self.chance(0.05):
            scalar = self.pick(lambda t: t.dim() == 0, "c")
            if scalar is not None:
                return scalar
        return self.pick(fits) or x

    def index(self, size: int, count: int | None = None) -> str:
        """An expression for `count` valid indices below `size`."""
        count = self.rng.randint(1, 4) if count is None else count
        existing = self.pick(lambda t: t.dtype == torch.int64 and t.dim() == 1 and len(t) == count)
        if existing and self.chance(0.4):
            return f"{existing} % {size}"
        values = [
            self.rng.randrange(-size, size) if self.chance(0.2) else self.rng.randrange(size)
            for _ in range(count)
        ]
        return f"torch.tensor({[v % size for v in values]}, device=device)"

    # ---- running --------------------------------------------------------------------------------

    def _fresh(self) -> dict[str, Any]:
        torch.manual_seed(self.seed)
        return namespace("cpu", 0, lambda value: None, lambda: None)

    def _rebuild(self) -> None:
        """Brings the state back to what `steps` made, after a statement that is not wanted."""
        self.names = self._fresh()
        for step in self.steps:
            self._execute(step)

    def _execute(self, step: Step) -> Exception | None:
        try:
            exec(compiled(step.code), self.names)
        except Exception as error:
            return error
        return None

    def _usable(self) -> bool:
        """Whether the newest variables are small and mostly finite: a world of NaN hides
        differences."""
        for t in list(variables(self.names).values())[-3:]:
            if t.numel() > MAX_ELEMENTS:
                return False
            checked = t.is_floating_point() and t.numel() and not self.chance(0.1)
            if checked and int(torch.isfinite(t.detach()).sum()) * 2 < t.numel():
                return False
        return True

    def add(self, code: str, may_fail: bool = False, keep_errors: bool = False) -> bool:
        """Runs and appends a statement; undoes it if it raised and errors are not wanted here."""
        step = Step(code, may_fail)
        error = self._execute(step)
        if error is None and self._usable():
            self.steps.append(step)
            return True
        keep = error is not None and not may_fail and self.allow_errors and self.errors_left > 0
        if keep and (keep_errors or self.chance(0.08)):
            self.errors_left -= 1
            self.steps.append(step)
            return True
        self._rebuild()
        return False
