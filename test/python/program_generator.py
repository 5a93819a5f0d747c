"""Makes random tensor programs: a seed becomes inputs, statements drawn from the catalogue and a
second tail."""

from __future__ import annotations

import random
import warnings

import program_events  # registers its families, as the next two do
import program_values  # noqa: F401
import program_views  # noqa: F401
import torch
from program_builder import MAX_LIVE, Builder, Program, Step
from program_catalogue import CATALOGUE


def _inputs(b: Builder) -> None:
    """Four to six tensors with fixed values, of all the dtypes."""
    shapes = [
        "(3, 4)",
        "(4, 3)",
        "(2, 3, 4)",
        "(4,)",
        "(5,)",
        "()",
        "(1, 4)",
        "(3, 1)",
        "(6, 2)",
        "(2, 2, 3)",
        "(3, 3)",
        "(0, 3)",
    ]
    for i in range(b.rng.randint(4, 6)):
        shape = b.rng.choice(shapes[:4] if i < 2 else shapes)
        seed = f"G({b.rng.randrange(1000)}{' + run' if b.changing else ''})"
        dtype = b.rng.choice(
            ["float32"] * 5
            + ["float64", "int64", "int64", "int32", "bool", "uint8", "complex64", "bfloat16"]
        )
        if i < 2:
            dtype = "float32"
        if dtype in ("int64", "int32"):
            value = f"torch.randint(-6, 7, {shape}, generator={seed}, dtype=torch.{dtype})"
        elif dtype in ("bool", "uint8"):
            end = 2 if dtype == "bool" else 9
            value = f"torch.randint(0, {end}, {shape}, generator={seed}).to(torch.{dtype})"
        else:
            value = f"torch.randn({shape}, generator={seed}, dtype=torch.{dtype})"
        leaf = ".requires_grad_()" if dtype.startswith("float") and b.chance(0.6) else ""
        b.add(f"{b.new()} = {value}.to(device){leaf}")


def _grow(b: Builder, length: int) -> None:
    """Appends statements drawn from the catalogue until the program has `length` of them."""
    weights = [entry.weight for entry in CATALOGUE]
    while len(b.steps) < length:
        if len(b.live()) > MAX_LIVE:
            entry, code = None, program_events.drop(b)
        else:
            entry = b.rng.choices(CATALOGUE, weights)[0]
            if entry.raises and not b.allow_errors:
                continue
            try:
                code = entry.make(b)
            except RuntimeError:  # asked a property of a view that a write to its base made invalid
                continue
        if code is None:
            continue
        if isinstance(code, str):
            code = [code]
        for line in code:
            if not b.add(line, bool(entry and entry.may_fail), bool(entry and entry.keep_errors)):
                break


def generate(seed: int, operations: int = 40, errors: bool = True, branch: bool = True) -> Program:
    """The program of a seed: its inputs, `operations` statements; equal for equal arguments."""

    def start() -> Builder:
        b = Builder(seed, allow_errors=errors)
        b.changing = b.chance(0.5)
        _inputs(b)
        return b

    state = torch.random.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        b = start()
        length = len(b.steps) + operations
        middle = len(b.steps) + random.Random(seed ^ 0x5EED).randrange(operations // 4, operations)
        _grow(b, middle)
        middle = len(b.steps)
        prefix = list(b.steps)
        saved = (b.counter, b.errors_left, b.fatal_left)
        _grow(b, length)
        steps = tuple(b.steps)
        tail: tuple[Step, ...] = ()
        if branch:
            b.steps, (b.counter, b.errors_left, b.fatal_left) = prefix, saved
            b.counter += 1000  # the names of the two tails differ, so a listing of both is readable
            b._rebuild()
            b.rng = random.Random(~seed)
            _grow(b, length)
            tail = tuple(b.steps[middle:])
    torch.random.set_rng_state(state)
    return Program(seed, steps, middle, tail)
