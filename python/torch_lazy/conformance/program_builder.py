"""The builder that grows a random program statement by statement.

It runs every statement on the CPU while it generates, so that the next one can be chosen by the
shapes, strides and dtypes that exist at that point, and so that one that raises, overflows or grows
too large is not taken.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_lazy.conformance.program import Step, compiled, namespace, variables
from torch_lazy.conformance.program_rounding import Rounding

# Integers of the programs are small: larger ones are bits of floats under `view(dtype)`.
SMALLEST_BITS = 1 << 20
_WRITES = re.compile(r"\w_\(|backward|\[.*\] =|[-+*/]=|\.(data|grad) =|out=")


@dataclass
class Builder:
    """The state of one generation: random stream, statements so far, their CPU results."""

    seed: int
    profile: str = "programs"
    most_elements: int = 2048
    allow_errors: bool = True  # False for programs that are timed
    rounding: Rounding | None = None  # kept where values have bounds of their own
    gradients: bool = False  # the program ends with a derivative
    changing: bool = False  # input values depend on the repetition
    input_names: list[str] = field(default_factory=list)
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
            except RuntimeError:  # a write to its base made a view invalid: properties raise
                return False

        return [k for k, t in variables(self.names).items() if k[0] == prefix and wanted(t)]

    def pick(
        self, want: Callable[[torch.Tensor], bool] | None = None, prefix: str = "v"
    ) -> str | None:
        """A live variable that satisfies `want`; younger ones are likelier, so that chains grow."""
        return self.choose(self.live(want, prefix))

    def choose(self, names: list[str]) -> str | None:
        if not names:
            return None
        return self.rng.choice(names[-5:] if self.chance(0.6) else names)

    def at(self, name: str) -> torch.Tensor:
        return self.names[name]

    def inputs(self) -> list[torch.Tensor]:
        return [self.names[name] for name in self.input_names if name in self.names]

    def is_exact(self, name: str) -> bool:
        return self.rounding is None or self.rounding.is_exact(name)

    def broadcastable(self, x: str, into: bool = False) -> str | None:
        """A variable that broadcasts with `x`, or into its shape."""
        shape = self.at(x).shape

        def fits(t: torch.Tensor) -> bool:
            try:
                out = torch.broadcast_shapes(shape, t.shape)
            except RuntimeError:
                return False
            return out == shape if into else out.numel() <= self.most_elements

        return self.pick(fits)

    # ---- running --------------------------------------------------------------------------------

    def _fresh(self) -> dict[str, Any]:
        torch.manual_seed(self.seed)
        return namespace("cpu", 0, lambda value: None, lambda: None)

    def restart(self, steps: list[Step]) -> None:
        """Brings the state to what `steps` make."""
        self.steps = list(steps)
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
        differences. What is computed from the bits of floats, as integers, would be as far from the
        CPU's as the bits, so such numbers may only be looked at where they lie."""
        tensors = list(variables(self.names).values())
        floats = {t.untyped_storage()._cdata for t in tensors if t.is_floating_point()}
        for t in tensors[-3:]:
            if t.numel() > self.most_elements:
                return False
            if t.numel() == 0 or t.is_complex():
                continue
            if t.is_floating_point():
                finite = int(torch.isfinite(t.detach()).sum())
                if finite * 2 < t.numel() and not self.chance(0.1):
                    return False
                continue
            own = t.untyped_storage()._cdata not in floats
            if own and max(int(t.max()), -int(t.min())) >= SMALLEST_BITS:
                return False
        return True

    def _taken(self, code: str, exact: bool) -> bool:
        if self.rounding is None:
            return self._usable()
        return self.rounding.admit(self.names, code, exact)

    def add(
        self, code: str, exact: bool = False, may_fail: bool = False, keep_errors: bool = False
    ) -> bool:
        """Runs and appends a statement; undoes it if it raised and errors are not wanted here."""
        step = Step(code, may_fail)
        before = set(self.names)
        error = self._execute(step)
        if error is None and self._taken(code, exact):
            self.steps.append(step)
            return True
        keep = error is not None and not may_fail and self.allow_errors and self.errors_left > 0
        if keep and (keep_errors or self.chance(0.08)):
            self.errors_left -= 1
            self.steps.append(step)
            return True
        if _WRITES.search(code):
            self.restart(self.steps)
        else:
            for name in self.names.keys() - before:
                del self.names[name]
        return False
