"""Makes random programs of what the kernel generator fuses: pointwise chains with broadcasts and
casts, reductions, views, gathers, writes in place, backward.
"""

from __future__ import annotations

import random
import warnings

import torch
from fusion_builder import CANCELLATION, SIZES, TOLERANCES, Builder, FusionProgram
from fusion_statements import OTHER, SMOOTH

_GRADIENT_FACTOR = 5.0  # of a tolerance: derivatives sum over more steps
_LONG_SHAPES = ["(70000,)", "(2, 40000)", "(40000, 2)", "(300, 257)"]


def _make_inputs(b: Builder) -> None:
    r, c, k = (b.rng.choice(SIZES) for _ in range(3))
    shapes = [(r, c), (r, c), (c,), (r, 1), (1, c), (k, r, c), (k, 1, c), (), (1,), (c, r)]
    for _ in range(b.rng.randint(2, 4)):
        shape = str(b.rng.choice(shapes if eval(f"{k * r * c} < {1 << 16}") else shapes[:5]))
        if b.chance(0.04):
            shape = b.rng.choice(_LONG_SHAPES)
        seed = f"generator=G({b.rng.randrange(1000)} + run)"
        dtype = b.rng.choice(
            ["float32"] * 6
            + ["float64", "bfloat16", "float16", "int64", "int64", "int32", "bool", "uint8"]
        )
        if (b.gradients and dtype in ("bfloat16", "float16")) or not b.inputs:
            dtype = "float32"
        if dtype in ("int64", "int32"):
            value = f"torch.randint(-6, 7, {shape}, {seed}, dtype=torch.{dtype})"
        elif dtype in ("bool", "uint8"):
            limit = 2 if dtype == "bool" else 9
            value = f"torch.randint(0, {limit}, {shape}, {seed}).to(torch.{dtype})"
        else:
            value = f"torch.randn({shape}, {seed}, dtype=torch.float32).to(torch.{dtype})"
        leaf = b.gradients and dtype.startswith("float")
        code = f"{value}.to(device)"
        if "," in shape and not leaf and b.chance(0.3):
            code += b.rng.choice(
                [
                    ".mT",
                    "[..., ::2]",
                    "[1:]",
                    ".mT[1:]",
                    "[::3]",
                    ".unsqueeze(0).expand(2, *[-1] * 2)",
                ]
            )
            if not _nonempty(b, code):
                code = f"{value}.to(device)"
        b.add_input(code, leaf)


def _nonempty(b: Builder, code: str) -> bool:
    try:
        return eval(code, b.scope).numel() > 0
    except (RuntimeError, IndexError):
        return False


def _add_backward(b: Builder, outputs: list[str]) -> None:
    """The derivative of a weighted sum of a result."""
    results = [n for n in reversed(b.names) if b.names[n].requires_grad and n.startswith("v")]
    leaves = [n for n in b.names if n.startswith("i") and b.names[n].requires_grad]
    if not results:
        return
    result = results[0]
    shape = tuple(b.names[result].shape)
    dtype = b.names[result].dtype
    steps = f"torch.arange({b.names[result].numel()}, dtype={dtype}, device=i0.device)"
    weights = f"{steps}.cos().reshape({shape})"
    loss = f"({result} * {weights}).sum()"
    try:
        found = torch.autograd.grad(
            eval(loss, b.scope), [b.names[n] for n in leaves], allow_unused=True, retain_graph=True
        )
    except RuntimeError:  # what it needs was written in place
        return
    used = [n for n, g in zip(leaves, found, strict=True) if g is not None and b.acceptable(g)]
    if not used:
        return
    made = [f"g{n}" for n in used]
    wanted = ", ".join(used)
    b.steps.append(f"{', '.join(made)}, = torch.autograd.grad({loss}, ({wanted},))")
    coarsest = max([b.tolerance(result), *(TOLERANCES[b.names[n].dtype] for n in used)])
    for name, n in zip(made, used, strict=True):
        b.names[name] = found[leaves.index(n)]
        b.set_tolerance(name, _GRADIENT_FACTOR * coarsest)
        terms = b.names[result].numel() / b.names[n].numel()
        b.set_scale(name, [result], CANCELLATION * max(1.0, terms) ** 0.5)
        outputs.append(name)


def fusion_program(rng: random.Random, operations: int = 14) -> FusionProgram:
    """A program of about so many statements."""
    gradients = rng.random() < 0.25
    b = Builder(rng, gradients)
    _make_inputs(b)
    entries = SMOOTH if gradients else SMOOTH + OTHER
    weights = [weight for weight, _ in entries]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(operations):
            rng.choices(entries, weights)[0][1](b)
        values = [name for name in b.names if name.startswith("v")]
        outputs = [name for name in values[:-1] if rng.random() < 0.25] + values[-1:]
        if gradients:
            _add_backward(b, outputs)
    tolerances = {name: b.tolerance(name) for name in b.names}
    return FusionProgram(tuple(b.inputs), tuple(b.steps), tuple(outputs), tolerances, b.scales)
