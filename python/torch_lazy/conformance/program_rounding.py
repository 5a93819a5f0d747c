"""What rounding may do to each value of a program while the program grows.

A value that was made from coarser ones has their tolerance; selections, views and casts of inputs,
integers and bools are exact. Where operands cancel, what is left is as rounded as they were, so a
value also has a scale, which its tolerance is taken of at least.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_lazy.conformance.program import Bound, variables

# Of the largest element.
TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.float16: 8e-3,
    torch.bfloat16: 6e-2,
}
GRADIENT_FACTOR = 5.0  # of a tolerance: derivatives sum over more steps
CANCELLATION = 0.25  # of the operands' scale
LARGEST = 1e3  # of an element, so that float16 holds it and sums do not cancel
LARGEST_INTEGER = 1 << 24
MOST_ELEMENTS = 1 << 18
_VARIABLE = re.compile(r"\bv\d+\b")


def tame(t: torch.Tensor) -> bool:
    """Whether the next statements can use a value: not empty, nowhere NaN or large."""
    if not 0 < t.numel() <= MOST_ELEMENTS or t.dim() > 5 or t.dtype.is_complex:
        return False
    if t.dtype == torch.bool:
        return True
    largest = t.detach().double().abs().max().item()
    return largest < (LARGEST if t.dtype.is_floating_point else LARGEST_INTEGER)


def _sharing_memory(names: dict[str, Any], target: str) -> list[str]:
    """All that see what is written to `target`."""
    storage = names[target].untyped_storage()._cdata
    tensors = variables(names).items()
    return [name for name, t in tensors if t.untyped_storage()._cdata == storage]


@dataclass
class Rounding:
    """The tolerances and scales of the variables so far, by name."""

    tolerances: dict[str, float] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)

    def is_exact(self, name: str) -> bool:
        return self.tolerances[name] == 0.0

    def bounds(self) -> dict[str, Bound]:
        return {name: Bound(t, self.scales[name]) for name, t in self.tolerances.items()}

    def admit(self, names: dict[str, Any], code: str, exact: bool) -> bool:
        """Takes what a statement made, or wrote, or refuses it: a large value, or a discontinuous
        function of a rounded one. `exact` statements only select and convert."""
        mentioned = list(dict.fromkeys(_VARIABLE.findall(code)))
        operands = [name for name in mentioned if name in self.tolerances]
        made = [name for name in mentioned if name not in self.tolerances]
        coarsest = max((self.tolerances[o] for o in operands), default=0.0)
        found = {}
        for target in made or mentioned[:1]:
            t, tolerance = names[target], coarsest
            if not tame(t) or (tolerance and not t.dtype.is_floating_point):
                return False
            if t.dtype.is_floating_point and (not exact or tolerance):
                tolerance = max(tolerance, TOLERANCES[t.dtype])
                for operand in operands if made else ():  # integers become float32
                    dtype = names[operand].dtype
                    tolerance = max(tolerance, TOLERANCES.get(dtype, TOLERANCES[torch.float32]))
            share = 1.0 if exact and made else CANCELLATION
            if ".sum(" in code:
                share *= max(1.0, max(names[o].numel() for o in operands) / t.numel())
            found[target] = tolerance, share
        for target, (tolerance, share) in found.items():
            seen = [target] if made else _sharing_memory(names, target)
            for name in seen:
                self.set(name, names[name], tolerance, operands, share)
        return True

    def set(
        self, name: str, t: torch.Tensor, tolerance: float, operands: list[str], share: float
    ) -> None:
        """Widens the bound of a variable to `tolerance` and to `share` of the operands' scales."""
        self.tolerances[name] = max(tolerance, self.tolerances.get(name, 0.0))
        largest = t.detach().double().abs().max().item()
        known = [share * self.scales[o] for o in operands]
        self.scales[name] = max([largest, self.scales.get(name, 0.0), *known])
