"""Programs as text, while they are being written: what unseen.py's families have in common.

A program makes its tensors once and then repeats a step. It is kept as source, so that a case
that is worth a look can be written to a file and run by itself.
"""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass, field
from typing import TypeVar

Choice = TypeVar("Choice")

# About how many elements the largest tensors have: from what costs nothing but calls to what no
# core's cache holds.
SIZES = {
    "tiny": (1, 64),
    "small": (256, 8_192),
    "cached": (16_384, 200_000),
    "large": (1_000_000, 4_000_000),
}
STEPS_KEPT = 8  # by a program that uses the results of several steps together
DTYPES = {"float32": 12, "float64": 3, "bfloat16": 3}  # and how often each is drawn


@dataclass(frozen=True)
class Value:
    """A tensor of floats under a name of the program."""

    name: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def elements(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass
class Draft:
    """A program under construction. `made` runs once, `step` at every step."""

    random: random.Random
    family: str
    size: str
    dtype: str
    train: bool
    elements: int = 0
    made: list[str] = field(default_factory=list)
    step: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)
    names: int = 0

    def one_of(self, *choices: Choice) -> Choice:
        return self.random.choice(choices)

    def number(self, low: float, high: float) -> float:
        return round(self.random.uniform(low, high), 3)

    def integer(self, low: int, high: int) -> int:
        """Evenly by order of magnitude, both ends included."""
        return max(low, min(high, int(low * (high / low) ** self.random.random() + 0.5)))

    def shape(self, dims: int, elements: int | None = None) -> tuple[int, ...]:
        """Sizes with about that product: round, awkward, or one of them far smaller than others."""
        left = float(elements or self.elements)
        sizes = []
        for remaining in range(dims, 1, -1):
            part = left ** (self.random.uniform(0.3, 1.7) / remaining)
            size = max(1, int(part + 0.5))
            if self.random.random() < 0.4:
                size = 1 << (size.bit_length() - 1)
            sizes.append(size)
            left = max(1.0, left / size)
        sizes.append(max(1, int(left)))
        self.random.shuffle(sizes)
        return tuple(sizes)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def make(self, expression: str) -> str:
        """A tensor or module that is made once, on the device."""
        name = self.name()
        self.made.append(f"{name} = ({expression}).to(device)")
        return name

    def tensor(self, *shape: int, scale: float = 1.0, leaf: bool | None = None) -> Value:
        """Made once, normally distributed; of a program that trains a leaf, unless told."""
        scaled = "" if scale == 1 else f".mul({scale})"
        name = self.make(f"torch.randn({list(shape)}){scaled}{self.cast()}")
        if self.train if leaf is None else leaf:
            self.made.append(f"{name}.requires_grad_()")
            self.leaves.append(name)
        return Value(name, tuple(shape))

    def positive(self, *shape: int) -> Value:
        """Made once, from 0 to 1; never a leaf."""
        return Value(self.make(f"torch.rand({list(shape)}){self.cast()}"), tuple(shape))

    def integers(self, high: int, *shape: int) -> str:
        return self.make(f"torch.randint({max(1, high)}, {list(shape)})")

    def mask(self, share: float, *shape: int) -> str:
        return self.make(f"torch.rand({list(shape)}) < {share}")

    def cast(self) -> str:
        return "" if self.dtype == "float32" else f".to(torch.{self.dtype})"

    def let(self, expression: str, shape: tuple[int, ...] = ()) -> Value:
        name = self.name()
        self.step.append(f"{name} = {expression}")
        return Value(name, shape)

    def do(self, *statements: str) -> None:
        self.step += statements

    def result(self, *values: Value | str) -> None:
        self.results += [str(value) for value in values]

    def finish(self, outcome: Value | str) -> None:
        """What the step is for: the value itself, or the gradients of a scalar made of it."""
        if not self.train or not self.leaves:
            self.result(outcome)
            return
        loss = self.let(self.one_of(f"{outcome}.float().square().mean()",
                                    f"{outcome}.float().abs().sum()",
                                    f"{outcome}.float().tanh().mean()"))  # fmt: skip
        self.backward(loss)

    def backward(self, loss: Value | str) -> None:
        if self.random.random() < 0.5:
            grads = self.let(
                f"torch.autograd.grad({loss}, [{', '.join(self.leaves)}], allow_unused=True)"
            )
            self.results.append(f"*(g for g in {grads} if g is not None)")
        else:
            self.do(f"{loss}.backward()")
            self.results += [f"*(p.grad for p in [{', '.join(self.leaves)}] if p.grad is not None)"]
            self.step.insert(0, f"for p in [{', '.join(self.leaves)}]:\n    p.grad = None")
        self.result(f"{loss}.detach()")

    def source(self, seed: int) -> str:
        end = self.random.choice(("sync", "sync", "sync", "value", "value", "kept"))
        made, lines = list(self.made), list(self.step)
        lines.append(f"results = [{', '.join(self.results)}]")
        if end == "sync":
            lines.append("synchronize()")
        elif end == "value":  # a script that prints its progress
            lines.append("float(results[-1].detach().sum())")
        else:
            made.append("kept = []")
            lines.append("kept.append(results)")
            lines.append(f"if len(kept) == {STEPS_KEPT}:\n    synchronize()\n    kept.clear()")
        lines.append("return results")
        made = textwrap.indent("\n".join(made), "    ")
        step = textwrap.indent("\n".join(lines), "        ")
        return (
            "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
            f"def make(device, synchronize):\n    torch.manual_seed({seed})\n{made}\n\n"
            f"    def step():\n{step}\n\n    return step\n"
        )
