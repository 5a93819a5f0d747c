"""The operands and numbers of a form: each name in braces is drawn when it is first mentioned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_lazy.conformance.program_builder import Builder

SIZES = (1, 2, 3, 5, 8, 17, 31, 33, 64, 129)
_FLOATS = ["0.5", "-1.25", "2", "3.0", "1", "-0.75", "1e-3"]
_INTEGERS = ["1", "2", "-3", "7"]
_MASKS = ["{0} > 0.3", "{0} <= -0.2", "{0} != 1", "~({0} < 0)", "({0} > -1) & ({0} < 1)"]
_PARTS = ["{x}.narrow({w}, {first}, {length})", "{x}.select({w}, {first})", "{x}[::2]"]
_PARTS += ["{x}.transpose(0, {w})"]


class Unavailable(Exception):
    """The program has nothing that could stand there."""


class Operands(dict):
    """What stands for the names of a form about the variable `x`: `"{x}.sum({d})".format_map(...)`.
    Names keep what was drawn for them."""

    def __init__(self, b: Builder, x: str):
        super().__init__(x=x)
        self.b = b
        self.rng = b.rng
        self.t = b.at(x)

    def __missing__(self, name: str) -> Any:
        self[name] = drawn = _DRAWN[name](self)
        if drawn is None:
            raise Unavailable
        return drawn

    def variable(self, want: Callable[[torch.Tensor], bool], instead: str | None = None) -> str:
        return self.b.pick(want) or instead or self["x"]


def _partner(o: Operands, into: bool) -> str:
    """A variable, a number or a tensor of the CPU."""
    if o.b.rounding is None:
        if o.b.chance(0.3):
            return _scalar(o)
        scalar = o.b.pick(lambda t: t.dim() == 0, "c") if o.b.chance(0.05) else None
        if scalar is not None:
            return scalar
    return o.b.broadcastable(o["x"], into) or o["x"]


def _scalar(o: Operands) -> str:
    floats = o.t.is_floating_point() or o.b.chance(0.15)
    return o.rng.choice(_FLOATS if floats else _INTEGERS)


def _known(o: Operands, shaped: bool) -> str | None:
    """An exact variable without gradient, for what is not continuous."""
    names = o.b.live(lambda t: not t.requires_grad and not t.is_complex())
    names = [name for name in names if o.b.is_exact(name)]
    return o.b.choose([n for n in names if not shaped or o.b.at(n).shape == o.t.shape])


def _mask(o: Operands) -> str | None:
    known = _known(o, shaped=False)
    return known and o.rng.choice(_MASKS).format(known)


def _pieces(o: Operands) -> str:
    """Two or three that `cat` along dim w joins."""

    def fits(other: torch.Tensor) -> bool:
        pairs = enumerate(zip(other.shape, o.t.shape, strict=False))
        return other.dim() == o.t.dim() and all(a == b or i == o["w"] for i, (a, b) in pairs)

    return ", ".join([o["x"], *(o.variable(fits) for _ in range(o.rng.randint(1, 2)))])


def _dims(o: Operands) -> str:
    """One dimension or several."""
    count = o.t.dim()
    if count == 0:
        return "0"
    chosen = sorted(o.rng.sample(range(count), o.rng.randint(1, count)))
    if o.b.chance(0.3):
        chosen = [d - count for d in chosen]
    return str(chosen[0]) if len(chosen) == 1 else str(tuple(chosen))


def _cut(o: Operands) -> str | None:
    """Two lengths that make up dim w."""
    size = o.t.size(o["w"])
    if size < 2:
        return None
    at = o.rng.randrange(1, size)
    return f"[{at}, {size - at}]"


def _sizes(o: Operands) -> str:
    """A shape for as many elements."""
    count = o.t.numel()
    first = o.rng.choice([d for d in range(1, count + 1) if count % d == 0])
    rest = count // first
    return o.rng.choice([f"{first}, {rest}", f"{first}, -1", "-1", f"1, {rest}, {first}"])


def _expansion(o: Operands) -> str | None:
    """Sizes with ones made larger, and dimensions before."""
    larger = [2, 3, 4] if o.b.rounding is None else [2, 17]
    sizes = [o.rng.choice(larger) if s == 1 else -1 for s in o.t.shape]
    if o.b.chance(0.5):
        sizes = [o.rng.randint(1, 3), *sizes]
    return ", ".join(map(str, sizes)) or None


def _indices(o: Operands, size: int) -> str:
    """Valid indices below a size: of the program's own integers, or a tensor of their own."""
    count = o.rng.randint(1, 4)
    existing = o.b.pick(lambda t: t.dtype == torch.int64 and t.dim() == 1 and len(t) == count)
    if existing and o.b.chance(0.4):
        return f"{existing} % {size}"
    return f"torch.tensor({[o.rng.randrange(size) for _ in range(count)]}, device=device)"


def _index(o: Operands, dim: int, least_dims: int = 0) -> str | None:
    """Exact integers of the program, of any shape, as indices of a dimension."""
    slices = o.t.numel() // o.t.size(dim)

    def fits(t: torch.Tensor) -> bool:
        small = t.numel() * slices <= o.b.most_elements
        return small and t.dtype == torch.int64 and t.dim() >= least_dims

    names = o.b.live(fits)
    name = o.b.choose([n for n in names if n != o["x"] and o.b.is_exact(n)])
    return name and f"{name}.remainder({o.t.size(dim)})"


def _conversion(o: Operands) -> str:
    """A dtype, and what makes x fit it: values outside an integer's range have no result."""
    any_value = o.b.rounding is None
    dtypes = ["float32"] * 3 + ["float64", "bfloat16", "float16", "int64", "int32", "bool"]
    dtypes += ["complex64"] if any_value else ["uint8"]
    dtype = o.rng.choice(["complex64", "complex128", "bool"] if o.t.is_complex() else dtypes)
    fit = ""
    if "int" in dtype and (any_value or o.b.chance(0.3)):
        fit = ".nan_to_num(0).clamp(-100, 100)"
    if dtype == "uint8" and o.t.is_floating_point():
        fit += ".abs()"
    return f"{fit}.to(torch.{dtype}{o.rng.choice(['', ', copy=True']) if any_value else ''})"


def _assigned(o: Operands) -> str:
    """A value written over all of x by index.

    PyTorch assigns a 0-dim tensor by fill_ if it is on the CPU, by copy_ on every other device
    (copy_to in ATen/TensorIndexing.h), and fill_ alone makes integers require a gradient. There is
    no eager behaviour for a device to agree with, so programs copy there.
    """
    x, y = o["x"], o["into"]
    gradient = y[0] == "v" and o.b.at(y).dim() == 0 and o.b.at(y).requires_grad
    return f"{x}.copy_({y})" if gradient and not o.t.is_floating_point() else f"{x}[...] = {y}"


def _out(o: Operands, numbers: bool = False) -> str | None:
    """A result's place. One that is resized and an input too has no defined result. `numbers`: none
    of bools, of which some operators say that they have no kernel once they have resized it."""
    operands = [o.b.at(name) for name in (o["x"], o["y"]) if name[0] in "vc"]
    inputs = {t.untyped_storage()._cdata for t in operands}

    def fits(t: torch.Tensor) -> bool:
        apart = not t.requires_grad and t.untyped_storage()._cdata not in inputs
        return apart and not (numbers and t.dtype == torch.bool)

    return o.b.pick(fits)


def _whole(o: Operands) -> int:
    """How many elements of `typed` its storage holds."""
    t = o.b.at(o["typed"])
    return min(t.numel(), t.untyped_storage().nbytes() // t.element_size())


def _shrunk(o: Operands) -> str:
    """Memory that a resize adds is not initialised, so this one adds none."""
    keeps = o.t.is_contiguous() and o.t.numel()
    return f"({o.rng.randint(0, max(1, o.t.numel()))},)" if keeps else "0"


def _matrix_right(o: Operands) -> str:
    """A matrix that x can be multiplied with."""

    def fits(t: torch.Tensor) -> bool:
        return t.dim() == 2 and t.dtype == o.t.dtype and t.size(0) == o.t.size(1)

    return o.variable(fits, f"{o['x']}.t()")


def _in_rows(o: Operands) -> str:
    """For each row of the matrix x one index."""
    if o.t.is_complex() or o.t.dtype == torch.bool:
        return f"torch.zeros({o.t.size(0)}, 1, dtype=torch.int64, device=device)"
    return f"({o['x']}.argmax(1, keepdim=True))"


def _integers(o: Operands) -> str:
    """A variable of x's shape, neither of floats nor complex."""

    def fits(t: torch.Tensor) -> bool:
        return t.shape == o.t.shape and not (t.is_floating_point() or t.is_complex())

    return o.variable(fits)


def _target(o: Operands) -> str:
    """x, or a view of a part of it."""
    whole = not o.t.numel() or not o.t.dim() or o.b.chance(0.6)
    return o["x"] if whole else o.rng.choice(_PARTS).format_map(o)


def _dim(o: Operands) -> int:
    return o.rng.randrange(-o.t.dim(), o.t.dim()) if o.t.dim() else 0


def _dropped(o: Operands) -> str | None:
    names = o.b.live() + o.b.live(prefix="c")
    return o.rng.choice(names) if len(names) > 4 else None


_DRAWN: dict[str, Callable[[Operands], Any]] = {
    **dict.fromkeys(("new", "p", "q"), lambda o: o.b.new()),
    "c": lambda o: o.b.new("c"),
    "result": lambda o: f"{o['new']} = " if o.b.chance(0.3) else "",
    # Operands: y and v broadcast with x, v is a variable; `into` and `written` do so into x.
    "y": lambda o: _partner(o, into=False),
    "into": lambda o: _partner(o, into=True),
    "v": lambda o: o.b.broadcastable(o["x"]) or o["x"],
    "written": lambda o: o.b.broadcastable(o["x"], into=True) or o["x"],
    "any": lambda o: o.variable(lambda t: True),
    "same": lambda o: o.variable(lambda t: t.shape == o.t.shape),
    "typed": lambda o: o.variable(lambda t: t.dtype == o.t.dtype and not t.requires_grad),
    "float": lambda o: o.variable(lambda t: t.is_floating_point() and not t.requires_grad),
    "integers": _integers,
    "right": _matrix_right,
    "pieces": _pieces,
    "mask": _mask,
    "same_mask": lambda o: (known := _known(o, shaped=True)) and f"{known} > 0.5",
    "target": _target,
    "assigned": _assigned,
    "out": _out,
    "out_of_numbers": lambda o: _out(o, numbers=True),
    "cpu": lambda o: o.b.pick(prefix="c"),
    "cpu_shaped": lambda o: o.variable(lambda t: t.shape == o.b.at(o["cpu"]).shape),
    "leaf": lambda o: o.variable(lambda t: t.requires_grad and t.is_leaf),
    "loss": lambda o: f"{o['x']}{'.abs()' if o.t.is_complex() else ''}.sum()",
    "dropped": _dropped,
    # Dimensions: d and e also count from the end, w does not; the next ones are about dim w.
    "d": _dim,
    "e": _dim,
    "w": lambda o: o.rng.randrange(max(1, o.t.dim())),
    "fresh_dim": lambda o: o.rng.randint(-o.t.dim() - 1, o.t.dim()),
    "dims": _dims,
    "order": lambda o: o.rng.sample(range(o.t.dim()), o.t.dim()),
    "first": lambda o: o.rng.randrange(o.t.size(o["w"])),
    "length": lambda o: o.rng.randint(1, o.t.size(o["w"]) - o.get("first", 0)),
    "cut": _cut,
    # Positions and counts.
    "row": lambda o: o.rng.randrange(max(1, o.t.size(0))),
    "column": lambda o: o.rng.randrange(max(1, o.t.size(-1))),
    "rows": lambda o: o.t.size(0),
    "columns": lambda o: o.t.size(-1),
    "numel": lambda o: o.t.numel(),
    "whole": _whole,
    "step": lambda o: o.rng.randint(1, 3),
    "half": lambda o: o.rng.randrange(2),
    "diagonal": lambda o: o.rng.choice([-1, 0, 1]),
    "n": lambda o: o.rng.choice(SIZES),
    "few": lambda o: o.rng.choice([1, 2, 3, 8]),
    "sizes": _sizes,
    "expansion": _expansion,
    "grown": lambda o: [o.rng.randint(1, 5) for _ in range(o.rng.randint(1, 3))],
    "shrunk": _shrunk,
    "repeats": lambda o: [1] * (o.t.dim() - 1) + [2],
    "last": lambda o: list(o.t.shape[-o.rng.randint(1, o.t.dim()) :]),
    # Numbers, indices and dtypes.
    "s": _scalar,
    "keep": lambda o: o.rng.choice(["", ", keepdim=True"]),
    "centred": lambda o: f"({o['x']} - {o['x']}.mean({o['d']}, keepdim=True))",
    "i": lambda o: _indices(o, o.t.size(0)),
    "j": lambda o: _indices(o, o.t.numel()),
    "index": lambda o: _index(o, o["w"]),
    # Indexing by a tensor of no dimensions reads the number, and what follows depends on it.
    "row_index": lambda o: _index(o, 0, least_dims=1),
    "in_rows": _in_rows,
    "conversion": _conversion,
}
