"""The families of statements that random programs draw from: the tables of program_catalogue.txt,
and functions where a table cannot say it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

import torch

from torch_lazy.conformance.program_builder import SMALLEST_BITS, Builder
from torch_lazy.conformance.program_operands import Operands, Unavailable

PROFILES = ("programs", "fusion")
CONDITIONS: dict[str, Callable[[torch.Tensor], bool]] = {
    "floating": lambda t: t.is_floating_point(),
    "complex": lambda t: t.is_complex(),
    "inexact": lambda t: t.is_floating_point() or t.is_complex(),
    "countable": lambda t: not (t.is_floating_point() or t.is_complex()),
    # What is left over of the bits of a float tells nothing of how far it is off.
    "integral": lambda t: (
        CONDITIONS["countable"](t)
        and t.dtype != torch.bool
        and (t.numel() == 0 or max(int(t.max()), -int(t.min())) < SMALLEST_BITS)
    ),
    "bool": lambda t: t.dtype == torch.bool,
    "numbers": lambda t: t.dtype != torch.bool,
    "real": lambda t: not t.is_complex(),
    **{f"bytes{n}": lambda t, n=n: t.element_size() == n for n in (1, 2, 4, 8)},
    "pairs": lambda t: t.dtype == torch.float32 and t.dim() > 0 and t.size(-1) == 2,
    "filled": lambda t: t.numel() > 0,
    "scalar": lambda t: t.dim() == 0,
    "some-dims": lambda t: t.dim() > 0,
    "dims": lambda t: t.dim() > 0 and t.numel() > 0,
    "flat": lambda t: t.dim() <= 2,
    "matrix": lambda t: t.dim() == 2,
    "deep": lambda t: t.dim() >= 2,
    "expandable": lambda t: 1 in t.shape or t.dim() < 2,
    "no-view": lambda t: not t._is_view(),
    "plain": lambda t: not t.requires_grad,
    "gradient": lambda t: t.requires_grad,
    "gradient-leaf": lambda t: t.is_leaf and t.requires_grad,
    "has-gradient": lambda t: t.is_leaf and t.grad is not None,
    "inner": lambda t: t.requires_grad and t.grad_fn is not None and CONDITIONS["inexact"](t),
    "writable": lambda t: not (t.is_leaf and t.requires_grad),
}


class Kind(IntEnum):
    """What a form does to rounded operands. Where the builder knows bounds, steps take exact
    operands only; programs that end with a derivative are made of smooth forms."""

    SMOOTH = 0  # the derivative is continuous
    KINK = 1  # the value is continuous
    STEP = 2  # a small change of an operand may be a large one of the value


@dataclass(frozen=True)
class Statements:
    """What a family offers: `exact` ones select and convert only."""

    codes: list[str]
    exact: bool = False


@dataclass(frozen=True)
class Form:
    code: str
    words: frozenset[str]

    def fits(self, b: Builder, x: str) -> bool:
        kind = Kind[
            "STEP" if "step" in self.words else "KINK" if "kink" in self.words else "SMOOTH"
        ]
        if (b.gradients and kind != Kind.SMOOTH) or (kind == Kind.STEP and not b.is_exact(x)):
            return False
        if self.words & set(PROFILES) - {b.profile}:
            return False
        return all(CONDITIONS[word](b.at(x)) for word in self.words & CONDITIONS.keys())


@dataclass
class Family:
    """Statements of one sort, drawn with the weight of the profile."""

    weights: dict[str, float]
    words: frozenset[str] = frozenset()
    forms: list[Form] = field(default_factory=list)
    function: Callable[[Builder], list[str] | None] | None = None

    @property
    def raises(self) -> bool:
        """Whether it is for programs that need not run through."""
        return bool(self.words & {"errors", "fails-late"})

    def _suits(self, b: Builder, t: torch.Tensor) -> bool:
        if "of-inputs" in self.words and not any(t is i for i in b.inputs()):
            return False
        return all(CONDITIONS[word](t) for word in self.words & CONDITIONS.keys())

    def _subject(self, b: Builder) -> str | None:
        usual = [
            word.removeprefix("usually-") for word in self.words if word.startswith("usually-")
        ]
        usual = usual if b.chance(0.75) else []
        return b.pick(lambda t: self._suits(b, t) and all(CONDITIONS[word](t) for word in usual))

    def make(self, b: Builder) -> Statements | None:
        """A statement, or several that belong together, or None where nothing fits."""
        if self.function is not None:
            codes = self.function(b)
            return Statements(codes) if codes else None
        x = self._subject(b)
        forms = [form for form in self.forms if x is not None and form.fits(b, x)]
        if not forms:
            return None
        form = b.rng.choice(forms)
        try:
            code = form.code.format_map(Operands(b, x))
        except Unavailable:
            return None
        if "statements" not in self.words:
            code = f"{b.new()} = {code}"
        if "no-grad" in self.words and b.rounding is None and b.chance(0.35):
            code = f"with torch.no_grad(): {code}"
        return Statements([code], "exact" in form.words)


def _parsed(text: str) -> list[Family]:
    families: list[Family] = []
    words: frozenset[str] = frozenset()
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            _, *given = line.split()
            weights = dict(word.split("=") for word in given if "=" in word)
            words = frozenset(word for word in given if "=" not in word)
            families.append(Family({p: float(w) for p, w in weights.items()}, words))
            continue
        if "|" in line:
            needs, line = line.split("|", 1)
            words = frozenset(needs.split())
        families[-1].forms += [Form(code, words) for code in re.split(r"\s{2,}", line.strip())]
    return families


def as_strided(b: Builder) -> list[str] | None:
    """Any view that stays within the storage."""
    x = b.pick(CONDITIONS["filled"])
    if x is None:
        return None
    t = b.at(x)
    elements = t.untyped_storage().nbytes() // t.element_size()
    sizes, strides, last = [], [], 0
    offset = b.rng.randrange(elements)
    for _ in range(b.rng.randint(0, 3)):
        stride, size = b.rng.choice([0, 1, 1, 2, 3, 4]), b.rng.randint(1, 4)
        if offset + last + stride * (size - 1) < elements:
            last += stride * (size - 1)
            sizes.append(size)
            strides.append(stride)
    return [f"{b.new()} = {x}.as_strided({sizes}, {strides}, {offset})"]


def _late_failure(b: Builder) -> list[str] | None:
    """An index that is fine until the last repetition, when a deferring device has the operator
    pending."""
    x = b.pick(CONDITIONS["dims"])
    if x is None or b.fatal_left == 0:
        return None
    b.fatal_left -= 1
    n, i, out = b.at(x).size(0), b.new(), b.new()
    codes = [f"{x}[{i}]", f"{x}.index_select(0, {i})"]
    if b.at(x).dim() == 1:
        codes += [f"torch.take({x}, {i})", f"{x}.gather(0, {i})"]
    # Known at the call, or pending itself.
    pending = " * 1" if b.chance(0.5) else ""
    index = f"{i} = torch.tensor([0, {n} if run == 3 else 0]).to(device){pending}"
    return [index, f"{out} = {b.rng.choice(codes)}"]


CATALOGUE = [
    *_parsed(Path(__file__).with_suffix(".txt").read_text()),
    Family({"programs": 2.0}, function=as_strided),
    Family({"programs": 0.5}, frozenset({"may-fail", "fails-late"}), function=_late_failure),
]
