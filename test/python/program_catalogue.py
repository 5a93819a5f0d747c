"""The registry of statement families that random programs draw from, and the words they share.

A family is a function that looks at the builder's live variables and returns a statement, several
that belong together, or None where nothing fits. Its weight says how often it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from program_builder import Builder

Made = str | list[str] | None
Make = Callable[[Builder], Made]


@dataclass(frozen=True)
class Entry:
    make: Make
    weight: float
    may_fail: bool  # can fail on its data, so on a deferring device late
    keep_errors: bool  # made to raise at the call
    raises: bool  # not for programs that must run through


CATALOGUE: list[Entry] = []


def family(
    weight: float, may_fail: bool = False, keep_errors: bool = False, fails_late: bool = False
) -> Callable[[Make], Make]:
    """Registers the function below it."""

    def register(make: Make) -> Make:
        CATALOGUE.append(Entry(make, weight, may_fail, keep_errors, keep_errors or fails_late))
        return make

    return register


def floating(t: torch.Tensor) -> bool:
    return t.is_floating_point()


def has_dims(t: torch.Tensor) -> bool:
    return t.dim() > 0 and t.numel() > 0


def room(t: torch.Tensor) -> int:
    """How many elements the whole storage holds."""
    return t.untyped_storage().nbytes() // t.element_size()
