"""What counts as the same observation of a random program on the CPU and on a device.

Generated kernels round some functions otherwise than ATen's (docs/accuracy.md), and a program goes
on computing with what it got. The interpreter is exact.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_lazy.conformance.double_reference import as_close_as_eager
from torch_lazy.conformance.program import Bound
from torch_lazy.conformance.program_builder import SMALLEST_BITS

EXACT = os.environ.get("TORCH_LAZY_BACKEND", "cpu") == "reference"
# Of values without a bound of their own, relative to the largest element; doubles may have been
# floats before. Inputs are of the order of 1: what is far smaller may be the rest of a difference.
_LOOSE = {torch.float64: 3e-4, torch.float32: 3e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}
_SMALLEST_SCALE = 0.05


@dataclass
class Trace:
    """What one run showed: (step, what, value) in order, and the failure on data that ended it."""

    events: list[tuple[int, str, Any]] = field(default_factory=list)
    fatal: tuple[int, str] | None = None

    def shows(self, failure: tuple[int, str]) -> bool:
        """Whether the last event is a state in which reading a tensor ended in that failure."""
        step, what, seen = self.events[-1] if self.events else (0, "", {})
        return (
            what == "state"
            and step >= failure[0]
            and any(tensor["value"] == failure[1] for tensor in seen.values())
        )


@dataclass(frozen=True)
class Difference:
    """The first disagreement between the CPU's run and the device's."""

    repetition: str
    step: int
    what: str
    expected: str
    actual: str
    is_uncompiled: bool = False  # nothing differs, but it did not run as compiled code alone

    def __str__(self) -> str:
        where = f"run {self.repetition}, step {self.step}: {self.what}"
        return f"{where}\n  cpu:    {self.expected}\n  device: {self.actual}"


def within(a: torch.Tensor, b: torch.Tensor, bound: Bound | None = None) -> torch.Tensor:
    """For each element of `b` whether it is as far from `a` as the bound allows, or that of the
    dtype; NaN and the infinities are equal to themselves."""
    bound = bound or Bound(_LOOSE.get(a.dtype, 0.0), _SMALLEST_SCALE)
    wide = torch.float64 if a.dtype.is_floating_point else torch.int64
    a, b = a.to(wide), b.to(wide)
    finite = a.isfinite()
    largest = float(a[finite].abs().max()) if bool(finite.any()) else 0.0
    allowed = bound.tolerance * max(largest, bound.scale)
    return (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= allowed)


_FLOAT_OF_BITS = {torch.int32: torch.float32, torch.int64: torch.float64}
_NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def close_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal, where they are not bits of floats that are close."""
    if a.dtype not in _FLOAT_OF_BITS:
        return torch.equal(a, b)
    bits = (a.abs() >= SMALLEST_BITS) & (b.abs() >= SMALLEST_BITS)
    as_floats = [t[bits].view(_FLOAT_OF_BITS[a.dtype]) for t in (a, b)]
    return torch.equal(a[~bits], b[~bits]) and bool(within(*as_floats).all())


def close_text(a: str, b: str) -> bool:
    """The same text around floats that are close."""
    floats = [torch.tensor([float(n) for n in _NUMBER.findall(text)]) for text in (a, b)]
    return _NUMBER.split(a) == _NUMBER.split(b) and bool(within(*floats).all())


def equal_values(a: torch.Tensor, b: torch.Tensor, bound: Bound | None = None) -> bool:
    """Bitwise, except that any NaN equals any NaN; floats of generated kernels within the bound."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.is_floating_point():
        return torch.equal(a, b) or (not EXACT and not bound and close_bits(a, b))
    if not EXACT:
        return bool(within(a, b, bound).all())
    different = (a != b) | (torch.signbit(a) != torch.signbit(b))
    return not bool((different & ~(a.isnan() & b.isnan())).any())


def _values_agree(
    expected: Any, actual: Any, bound: Bound | None, exact: Callable[[], Any]
) -> bool:
    """Whether two values agree: within the bound, or as close to the value in double as eager's."""
    if isinstance(expected, float) and isinstance(actual, float):
        expected, actual = (torch.tensor([v], dtype=torch.float64) for v in (expected, actual))
    if isinstance(expected, str) and isinstance(actual, str):
        return expected == actual or (not EXACT and close_text(expected, actual))
    if not (isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor)):
        return type(expected) is type(actual) and expected == actual
    if equal_values(expected, actual, bound):
        return True
    reference = None if EXACT else exact()
    if isinstance(reference, float):
        reference = torch.tensor([reference], dtype=torch.float64)
    if not isinstance(reference, torch.Tensor) or expected.dtype != actual.dtype:
        return False
    three = [actual, expected, reference]
    if all(t.is_complex() for t in three):
        three = [torch.view_as_real(t) for t in three]
    return three[0].shape == three[1].shape and as_close_as_eager(*three)


def _differences(
    expected: Any,
    actual: Any,
    bounds: dict[str, Bound],
    exact: Callable[[tuple[str, ...]], Any],
    path: tuple[str, ...] = (),
) -> Iterator[tuple[str, Any, Any]]:
    """Where two observations differ, and both sides. `exact` finds what a run in double showed at
    the end of a path."""
    both = isinstance(expected, dict) and isinstance(actual, dict)
    if both and expected.keys() == actual.keys():
        for key in expected:
            yield from _differences(expected[key], actual[key], bounds, exact, (*path, key))
    else:
        bound = bounds.get(path[0]) if path else None
        if not _values_agree(expected, actual, bound, lambda: exact(path)):
            yield "".join(f" {key}" for key in path), expected, actual


def _short(value: Any) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) < 400 else text[:400] + "…"


def _reference(expected: Trace, exact: Trace | None, position: int, path: tuple[str, ...]) -> Any:
    """What the run in double showed at this point, if it took the same way there."""
    if exact is None or len(exact.events) <= position:
        return None
    pairs = zip(expected.events[: position + 1], exact.events, strict=False)
    for (step, what, a), (step2, what2, b) in pairs:
        if (step, what) != (step2, what2):
            return None
        if isinstance(a, dict) and "shape" in a and a["shape"] != b["shape"]:
            return None
    value = exact.events[position][2]
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def compare(
    expected: Trace,
    actual: Trace,
    repetition: str,
    bounds: dict[str, Bound] | None = None,
    in_double: Callable[[], Trace | None] = lambda: None,
) -> Difference | None:
    """The first difference between two records; after a late failure only what came before it
    counts. `in_double` makes the record of the run that decides what is rounding."""
    end = expected.fatal[0] if expected.fatal else None
    left = [e for e in expected.events if end is None or e[0] < end]
    right = [e for e in actual.events if end is None or e[0] < end]
    for position, ((step, what, a), (step2, what2, b)) in enumerate(zip(left, right, strict=False)):
        if (step, what) != (step2, what2):
            sides = f"step {step} {what}: {_short(a)}", f"step {step2} {what2}: {_short(b)}"
            return Difference(repetition, min(step, step2), "different observations", *sides)

        def exact(path: tuple[str, ...], position: int = position) -> Any:
            return _reference(expected, in_double(), position, path)

        for where, x, y in _differences(a, b, bounds or {}, exact):
            return Difference(repetition, step, what + where, _short(x), _short(y))
    if expected.fatal != actual.fatal:
        step = min(f[0] for f in (expected.fatal, actual.fatal) if f)
        sides = _short(expected.fatal), _short(actual.fatal)
        return Difference(repetition, step, "failure on data", *sides)
    if len(left) != len(right):
        extra = (left[len(right) :] or right[len(left) :])[0]
        sides = f"{len(left)} observations", f"{len(right)}, around {_short(extra)}"
        return Difference(repetition, extra[0], "missing or additional observation", *sides)
    return None
