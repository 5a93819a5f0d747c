"""A random fusion program while it grows: it runs on the CPU as it does, so that a statement that
raises, overflows or grows too large is not taken. Each value carries the tolerance it may be
compared with.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

# Of the largest element. A value that was made from coarser ones has their tolerance; selections,
# views and casts of inputs, integers and bools are exact.
TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.float16: 8e-3,
    torch.bfloat16: 6e-2,
}
# Of the operands' scale: what is left where they cancel is as rounded as they were.
CANCELLATION = 0.25
LARGEST = 1e3  # of an element, so that float16 holds it and sums do not cancel
MOST_ELEMENTS = 1 << 18
SIZES = [1, 2, 3, 5, 8, 17, 31, 33, 64, 129]


@dataclass(frozen=True)
class FusionProgram:
    """`inputs` make the arguments; `steps` are the function's body."""

    inputs: tuple[str, ...]
    steps: tuple[str, ...]
    outputs: tuple[str, ...]
    tolerances: dict[str, float]
    scales: dict[str, float]  # what a tolerance is taken of at least

    def arguments(self) -> list[str]:
        return [line.split(" = ")[0] for line in self.inputs]

    def function(self) -> str:
        returned = "".join(f"{name}, " for name in self.outputs)
        body = [*self.steps, f"return ({returned})"]
        return f"def program({', '.join(self.arguments())}):\n    " + "\n    ".join(body) + "\n"

    def without(self, field: str, position: int) -> FusionProgram:
        kept = list(getattr(self, field))
        del kept[position]
        return replace(self, **{field: tuple(kept)})


class Builder:
    def __init__(self, rng: random.Random, gradients: bool):
        self.rng = rng
        self.gradients = gradients
        self.names: dict[str, torch.Tensor] = {}
        self.inputs: list[str] = []
        self.steps: list[str] = []
        self.count = 0
        self._tolerance_of_storage: dict[int, float] = {}
        self.scales: dict[str, float] = {}
        self.scope = {
            "torch": torch,
            "F": torch.nn.functional,
            "G": lambda seed: torch.Generator().manual_seed(seed),
            "device": "cpu",
            "run": 0,
        }

    # ---- Values ----

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def tolerance(self, name: str) -> float:
        return self._tolerance_of_storage[self.names[name].untyped_storage().data_ptr()]

    def set_tolerance(self, name: str, tolerance: float) -> None:
        key = self.names[name].untyped_storage().data_ptr()
        self._tolerance_of_storage[key] = max(self._tolerance_of_storage.get(key, 0.0), tolerance)

    def set_scale(self, name: str, operands: list[str], share: float = CANCELLATION) -> None:
        own = self.names[name].detach().double().abs().max().item()
        known = self.scales.get(name, 0.0)
        self.scales[name] = max([own, known, *(share * self.scales[o] for o in operands)])

    def pick(self, accept: Callable[[str], bool] = lambda name: True) -> str | None:
        """A value, the later ones more often."""
        names = [name for name in self.names if accept(name)]
        if not names:
            return None
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))]

    def is_float(self, name: str) -> bool:
        return self.names[name].dtype.is_floating_point

    def is_exact(self, name: str) -> bool:
        return self.tolerance(name) == 0.0

    def pick_float(self) -> str | None:
        return self.pick(self.is_float)

    def pick_shaped(self, shape: torch.Size) -> str | None:
        """Something that broadcasts against the shape."""

        def fits(name: str) -> bool:
            try:
                made = torch.broadcast_shapes(self.names[name].shape, shape)
            except RuntimeError:
                return False
            return made.numel() <= MOST_ELEMENTS

        return self.pick(fits)

    # ---- Statements ----

    def add_input(self, code: str, leaf: bool) -> None:
        name = f"i{len(self.inputs)}"
        line = f"{name} = {code}{'.requires_grad_()' if leaf else ''}"
        self.inputs.append(line)
        exec(line, self.scope)
        self.names[name] = self.scope[name]
        self.set_tolerance(name, 0.0)
        self.set_scale(name, [])

    def acceptable(self, t: torch.Tensor) -> bool:
        if t.numel() == 0 or t.numel() > MOST_ELEMENTS or t.dim() > 5 or t.dtype.is_complex:
            return False
        if t.dtype == torch.bool:
            return True
        largest = t.detach().double().abs().max().item()
        return largest < LARGEST if t.dtype.is_floating_point else largest < 2**24

    def add(self, code: str, exact: bool = False) -> str | None:
        """Takes `name = code` unless it is refused; `exact` statements only select and convert."""
        operands = [name for name in re.findall(r"\b[iv]\d+\b", code) if name in self.names]
        try:
            made = eval(code, self.scope)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None
        if not isinstance(made, torch.Tensor) or not self.acceptable(made):
            return None
        tolerance = max((self.tolerance(o) for o in operands), default=0.0)
        if not made.dtype.is_floating_point:
            if tolerance:
                return None  # a discontinuous function of a rounded value
        elif not exact or tolerance:
            tolerance = max(tolerance, TOLERANCES[made.dtype])
            for operand in operands:  # integers become float32
                dtype = self.names[operand].dtype if self.is_float(operand) else torch.float32
                tolerance = max(tolerance, TOLERANCES[dtype])
        name = f"v{self.count}"
        self.count += 1
        self.steps.append(f"{name} = {code}")
        self.names[name] = self.scope[name] = made
        self.set_tolerance(name, tolerance)
        share = 1.0 if exact else CANCELLATION
        if ".sum(" in code:
            share *= max(1.0, max(self.names[o].numel() for o in operands) / made.numel())
        self.set_scale(name, operands, share)
        return name

    def write(self, target: str, code: str, exact: bool = False) -> None:
        """Takes a statement that writes `target`'s memory."""
        operands = [name for name in re.findall(r"\b[iv]\d+\b", code) if name in self.names]
        t = self.names[target]
        tolerance = max(self.tolerance(o) for o in operands)
        if not t.dtype.is_floating_point and tolerance:
            return
        storage = t.untyped_storage()
        before = storage.clone()
        try:
            exec(code, self.scope)
            good = self.acceptable(t)
        except (RuntimeError, IndexError, TypeError, ValueError):
            good = False
        if not good:
            storage.copy_(before)
            return
        if t.dtype.is_floating_point and (not exact or tolerance):
            tolerance = max(tolerance, TOLERANCES[t.dtype])
        self.steps.append(code)
        self.set_tolerance(target, tolerance)
        for name, other in self.names.items():  # all that see the memory
            if other.untyped_storage().data_ptr() == storage.data_ptr():
                self.set_scale(name, operands)
