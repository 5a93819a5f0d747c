"""What the passes cost on the windows of one training step of about 2,000 and 20,000 operations.

    python benchmarks/passes.py --operations 2000,20000

The model is a sequence of LSTM cells, transformer blocks, gated blocks and plain ones in which no
part follows itself, and Adam takes lists of tensors, so that no period flushes a window: a step is
forward, backward and Adam at every size. Every window is compiled exactly once, which is checked.
Times are processor time of the compile thread, from ``torch.lazy.metrics()["compile_ns"]``; those
of the cheapest of several models, after one that is not counted, so that all find memory warm.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import torch_lazy

WIDTH, ROWS = 32, 8
SAMPLE_BLOCKS = 32
MOST_STEPS = 6
PASSES = (
    "graph",
    "functionalize",
    "decompose",
    "add_pieces",
    "simplify",
    "read",
    "fuse",
    "lower",
    "place",
    "plan",
)


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.cell(x)
        return x + self.cell(x, (h, c))[0]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.view(ROWS, 4, -1) for part in self.qkv(self.norm(x)).chunk(3, -1))
        weights = (q @ k.transpose(1, 2) / 3).softmax(-1)
        return x + self.out((weights @ v).reshape(ROWS, WIDTH))


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


KINDS = (Cell, Attention, Gated, Mlp)


def square_free(length: int, random_numbers: random.Random) -> list[int]:
    """Random kinds of blocks; no part of the sequence follows itself."""
    word: list[int] = []
    untried = [random_numbers.sample(range(len(KINDS)), len(KINDS))]
    while len(word) < length:
        if not untried[-1]:
            untried.pop()
            word.pop()
            continue
        longer = [*word, untried[-1].pop()]
        halves = range(1, len(longer) // 2 + 1)
        if not any(longer[-half:] == longer[-2 * half : -half] for half in halves):
            word = longer
            untried.append(random_numbers.sample(range(len(KINDS)), len(KINDS)))
    return word


class Training:
    def __init__(self, blocks: int, seed: int) -> None:
        order = square_free(blocks, random.Random(seed))
        self.net = nn.Sequential(*(KINDS[kind]() for kind in order)).to("lazy")
        self.optimizer = torch.optim.Adam(self.net.parameters(), foreach=True)
        self.x = torch.randn(ROWS, WIDTH).to("lazy")

    def step(self) -> dict[str, Any]:
        """What the step added to the metrics."""
        torch_lazy.reset_metrics()
        self.optimizer.zero_grad()
        self.net(self.x).square().mean().backward()
        self.optimizer.step()
        torch_lazy.synchronize()
        torch_lazy.wait_for_compiles()
        return torch_lazy.metrics()


def measure(blocks: int, seed: int) -> tuple[int, dict[str, float]]:
    """Operations of a step, milliseconds of each pass over all its windows."""
    training = Training(blocks, seed)
    training.step()  # makes the optimizer's state
    compiles, times = 0, dict.fromkeys(PASSES, 0.0)
    for _ in range(MOST_STEPS):
        metrics = training.step()
        compiles += metrics["compiles"]
        for name in PASSES:
            times[name] += metrics["compile_ns"].get(name, 0) / 1e6
        if set(metrics["windows"]) == {"hot"}:
            break
    else:
        raise SystemExit(f"after {MOST_STEPS} steps windows are still {metrics['windows']}")
    windows = metrics["windows"]["hot"]
    if compiles != windows:
        raise SystemExit(f"{compiles} compiles of the {windows} windows of a step: nothing to tell")
    return metrics["recorded"], times


def blocks_for(operations: int) -> int:
    """The number of blocks whose step has about so many operations."""
    training = Training(SAMPLE_BLOCKS, 0)
    training.step()
    return max(1, round(operations * SAMPLE_BLOCKS / training.step()["recorded"]))


def total(times: dict[str, float]) -> float:
    return sum(times.values())


def table(sizes: list[int], models: int) -> None:
    columns = []
    for size in sizes:
        blocks = blocks_for(size)
        runs = [measure(blocks, seed) for seed in range(models + 1)][1:]
        columns.append(min(runs, key=lambda run: total(run[1]) / run[0]))
    print("| pass | " + " | ".join(f"{count} operations, ms" for count, _ in columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for name in PASSES:
        print(f"| {name} | " + " | ".join(f"{times[name]:.1f}" for _, times in columns) + " |")
    print("| all | " + " | ".join(f"{total(times):.1f}" for _, times in columns) + " |")
    (fewest, first), *others = columns
    for count, times in others:
        n_log_n = count * math.log(count) / (fewest * math.log(fewest))
        print(
            f"\n{fewest} to {count} operations: {total(times) / total(first):.1f} x the time, "
            f"where n log n is {n_log_n:.1f} x."
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--operations", default="2000,20000")
    parser.add_argument("--models", type=int, default=3)
    options = parser.parse_args()
    torch_lazy.config.window_operations = 1_000_000
    print("Processor time of each pass, over all windows of one training step.\n")
    table([int(size) for size in options.operations.split(",")], options.models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
