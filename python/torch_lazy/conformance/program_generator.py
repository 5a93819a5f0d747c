"""Makes random tensor programs of two profiles from one catalogue: a seed becomes inputs and the
statements that follow.

`programs` is about what a user can observe: views, writes in place through aliases, autograd, syncs
and copies, numbers that change, errors; a second tail is the changed branch of a later run.

`fusion` is about generated kernels: pointwise chains with broadcasts and casts, reductions, views,
gathers, writes in place, a derivative, on shapes of all sorts. Its values stay bounded, so that
each has a tolerance of its own, and all that it does has to be compiled.
"""

from __future__ import annotations

import random
import warnings

import torch

from torch_lazy.conformance.program import Program, Step
from torch_lazy.conformance.program_builder import Builder
from torch_lazy.conformance.program_catalogue import CATALOGUE, as_strided
from torch_lazy.conformance.program_operands import SIZES
from torch_lazy.conformance.program_rounding import (
    CANCELLATION,
    GRADIENT_FACTOR,
    MOST_ELEMENTS,
    TOLERANCES,
    Rounding,
    tame,
)

OPERATIONS = {"programs": 40, "fusion": 14}
_MAX_LIVE = 14
_SHAPES = ["(3, 4)", "(4, 3)", "(2, 3, 4)", "(4,)", "(5,)", "()", "(1, 4)", "(3, 1)", "(6, 2)"]
_SHAPES += ["(2, 2, 3)", "(3, 3)", "(0, 3)"]
_LONG_SHAPES = ["(70000,)", "(2, 40000)", "(40000, 2)", "(300, 257)"]
_VIEWS = [".mT", "[..., ::2]", "[1:]", ".mT[1:]", "[::3]", ".unsqueeze(0).expand(2, *[-1] * 2)"]
_DTYPES = ["float32"] * 5 + ["float64", "int64", "int64", "int32", "bool", "uint8", "bfloat16"]


def _drawn(b: Builder, shape: str, dtype: str) -> str:
    """A tensor of random numbers; those of floats are the same for all their dtypes."""
    seed = f"generator=G({b.rng.randrange(1000)}{' + run' if b.changing else ''})"
    if dtype in ("int64", "int32"):
        return f"torch.randint(-6, 7, {shape}, {seed}, dtype=torch.{dtype})"
    if dtype in ("bool", "uint8"):
        return f"torch.randint(0, {2 if dtype == 'bool' else 9}, {shape}, {seed}).to(torch.{dtype})"
    kind = "cfloat" if dtype == "complex64" else "float"
    return f"torch.randn({shape}, {seed}, dtype=torch.{kind}).to(torch.{dtype})"


def _program_inputs(b: Builder) -> None:
    """Four to six small tensors of all the dtypes."""
    for i in range(b.rng.randint(4, 6)):
        shape = b.rng.choice(_SHAPES[:4] if i < 2 else _SHAPES)
        dtype = "float32" if i < 2 else b.rng.choice([*_DTYPES, "complex64"])
        leaf = ".requires_grad_()" if dtype in ("float32", "float64") and b.chance(0.6) else ""
        b.add(f"{b.new()} = {_drawn(b, shape, dtype)}.to(device){leaf}")


def _views_before_the_window(b: Builder) -> None:
    """Views of the inputs, also permuted, expanded and overlapping ones, that a window sees as
    inputs of their own: which of them it meets first, and whether it meets their base, is left to
    what follows."""
    for _ in range(b.rng.randint(2, 4)):
        if b.chance(0.4):
            code = as_strided(b)
        else:
            x = b.pick(lambda t: t.dim() > 1)
            views = [*_VIEWS, f".expand(2, *{x}.shape)"]
            code = [f"{b.new()} = {x}{b.rng.choice(views)}"] if x else None
        if code:
            b.add(code[0])
    for _ in range(b.rng.randint(0, 2)):
        _parts_that_move(b)
    if b.chance(0.5):
        b.add(f"del {b.rng.choice(b.live())}")
    b.add("synchronize()")


def _parts_that_move(b: Builder) -> None:
    """Views of an input that begin elsewhere in each run. The device is made to know that parts of
    it move, so that those which the window takes itself are no operations of it."""
    x = b.pick(lambda t: any(size > 1 for size in t.shape))
    if x is None:
        return
    sizes = b.at(x).shape
    dim = b.rng.choice([d for d, size in enumerate(sizes) if size > 1])
    for _ in range(b.rng.randint(1, 2)):
        first = f"(run + {b.rng.randint(0, 1)}) % 2"
        b.add(f"{b.new()} = {x}.narrow({dim}, {first}, {sizes[dim] - 1})")
    if b.chance(0.7):
        part = f"[{x}.narrow({dim}, k, 1) for _ in range(8)]"
        b.add(f"for k in range(2): {part}, synchronize()")


def _fusion_inputs(b: Builder) -> None:
    """Two to four tensors whose shapes broadcast, some views of larger ones."""
    r, c, k = (b.rng.choice(SIZES) for _ in range(3))
    shapes = [(r, c), (r, c), (c,), (r, 1), (1, c), (k, r, c), (k, 1, c), (), (1,), (c, r)]
    for _ in range(b.rng.randint(2, 4)):
        shape = str(b.rng.choice(shapes if k * r * c < 1 << 16 else shapes[:5]))
        shape = b.rng.choice(_LONG_SHAPES) if b.chance(0.04) else shape
        dtype = b.rng.choice([*_DTYPES, "float32", "float16"]) if b.input_names else "float32"
        if b.gradients and dtype in ("bfloat16", "float16"):
            dtype = "float32"
        leaf = b.gradients and dtype in ("float32", "float64")
        name, code = b.new(), f"{_drawn(b, shape, dtype)}.to(device)"
        view = b.rng.choice(_VIEWS) if "," in shape and not leaf and b.chance(0.3) else ""
        if not b.add(f"{name} = {code}{view or '.requires_grad_()' * leaf}", exact=True):
            b.add(f"{name} = {code}", exact=True)  # the view has no elements
        b.input_names.append(name)


def _grow(b: Builder, length: int) -> None:
    """Appends statements drawn from the catalogue until the program has `length` of them."""
    weights = [family.weights.get(b.profile, 0.0) for family in CATALOGUE]
    while len(b.steps) < length:
        if len(names := b.live()) > _MAX_LIVE and b.rounding is None:
            b.add(f"del {b.rng.choice(names + b.live(prefix='c'))}")
            continue
        family = b.rng.choices(CATALOGUE, weights)[0]
        if family.raises and not b.allow_errors:
            continue
        try:
            made = family.make(b)
        except RuntimeError:  # asked a property of a view that a write to its base made invalid
            continue
        for code in made.codes if made else ():
            if not b.add(code, made.exact, "may-fail" in family.words, "errors" in family.words):
                break


def _programs(seed: int, operations: int, errors: bool, branch: bool) -> Program:
    b = Builder(seed, allow_errors=errors)
    b.changing = b.chance(0.5)
    _program_inputs(b)
    if b.chance(0.3):
        _views_before_the_window(b)
    length = len(b.steps) + operations
    _grow(b, len(b.steps) + random.Random(seed ^ 0x5EED).randrange(operations // 4, operations))
    prefix = list(b.steps)
    saved = (b.counter, b.errors_left, b.fatal_left)
    _grow(b, length)
    steps = tuple(b.steps)
    tail: tuple[Step, ...] = ()
    if branch:
        b.counter, b.errors_left, b.fatal_left = saved
        b.counter += 1000  # the names of the two tails differ, so a listing of both is readable
        b.restart(prefix)
        b.rng = random.Random(~seed)
        _grow(b, length)
        tail = tuple(b.steps[len(prefix) :])
    return Program(seed, steps, len(prefix), tail)


def _add_derivative(b: Builder) -> list[str]:
    """The derivative of a weighted sum of the last result; returns its variables."""
    results = b.live(lambda t: t.requires_grad and not t.is_leaf)
    if not results:
        return []
    result = results[-1]
    t = b.at(result)
    steps = f"torch.arange({t.numel()}, dtype={t.dtype}, device=device)"
    loss = f"({result} * {steps}.cos().reshape({tuple(t.shape)})).sum()"
    leaves = [name for name in b.input_names if b.at(name).requires_grad]
    tensors = [b.at(name) for name in leaves]
    try:
        found = torch.autograd.grad(
            eval(loss, b.names), tensors, allow_unused=True, retain_graph=True
        )
    except RuntimeError:  # what it needs was written in place
        return []
    used = [(n, g) for n, g in zip(leaves, found, strict=True) if g is not None and tame(g)]
    if not used:
        return []
    made = [b.new() for _ in used]
    wanted = ", ".join(name for name, _ in used)
    b.steps.append(Step(f"{', '.join(made)}, = torch.autograd.grad({loss}, ({wanted},))"))
    tolerances = [TOLERANCES[g.dtype] for _, g in used]
    coarsest = GRADIENT_FACTOR * max(b.rounding.tolerances[result], *tolerances)
    for name, (_, g) in zip(made, used, strict=True):
        share = CANCELLATION * max(1.0, t.numel() / g.numel()) ** 0.5
        b.rounding.set(name, g, coarsest, [result], share)
    return made


def _fusion(seed: int, operations: int) -> Program:
    b = Builder(
        seed, "fusion", most_elements=MOST_ELEMENTS, allow_errors=False, rounding=Rounding()
    )
    b.gradients, b.changing = b.chance(0.25), True
    _fusion_inputs(b)
    b.steps.append(Step("synchronize()"))  # what follows is a window of its own
    _grow(b, len(b.steps) + operations)
    values = [name for name in b.live() if name not in b.input_names]
    results = [name for name in values[:-1] if b.chance(0.25)] + values[-1:]
    if b.gradients:
        results += _add_derivative(b)
    b.steps += [Step(f"del {name}") for name in values if name not in results]
    return Program(seed, tuple(b.steps), bounds=b.rounding.bounds(), compiles=True)


def generate(
    seed: int,
    profile: str = "programs",
    operations: int | None = None,
    errors: bool = True,
    branch: bool = True,
) -> Program:
    """The program of a seed: its inputs, `operations` statements; equal for equal arguments."""
    operations = operations or OPERATIONS[profile]
    state = torch.random.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if profile == "fusion":
            program = _fusion(seed, operations)
        else:
            program = _programs(seed, operations, errors, branch)
    torch.random.set_rng_state(state)
    return program
