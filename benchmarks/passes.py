"""What the passes cost on the windows of one training step of about 2,000 and 20,000 operations.

    python benchmarks/passes.py --operations 2000,20000

The model is a sequence of LSTM cells, transformer blocks, gated blocks and convolutions that never
repeats, so that no period cuts its windows; a step is forward, backward and Adam. Times are
processor time of the compile thread, from ``torch.lazy.metrics()["compile_ns"]``; the best of
several models of equal size, each of which is compiled once.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import torch_lazy

WIDTH, ROWS = 32, 8
PASSES = (
    "graph",
    "functionalize",
    "decompose",
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


def model(blocks: int, seed: int) -> nn.Module:
    kinds = random.Random(seed)
    return nn.Sequential(
        *(kinds.choice((Cell, Attention, Gated, Mlp))() for _ in range(blocks))
    ).to("lazy")


def wait_for_compiles() -> None:
    """Until none has ended for a second."""
    before, quiet = -1, 0
    while quiet < 10:
        time.sleep(0.1)
        now = sum(torch_lazy.metrics()["compile_ns"].values())
        quiet = quiet + 1 if now == before else 0
        before = now


def measure(blocks: int, seed: int) -> tuple[int, dict[str, float]]:
    """Operations of a step, milliseconds of each pass over all its windows."""
    net = model(blocks, seed)
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(ROWS, WIDTH).to("lazy")

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        torch_lazy.synchronize()

    step()
    torch_lazy.reset_metrics()
    step()
    operations = torch_lazy.metrics()["recorded"]
    wait_for_compiles()
    times = torch_lazy.metrics()["compile_ns"]
    return operations, {name: times.get(name, 0) / 1e6 for name in PASSES}


def table(sizes: list[int], models: int) -> None:
    columns = []
    for size in sizes:
        operations, _ = measure(8, 0)
        blocks = max(1, round(size * 8 / operations))
        runs = [measure(blocks, seed) for seed in range(1, models + 1)]
        columns.append(
            (runs[0][0], {name: min(times[name] for _, times in runs) for name in PASSES})
        )
    print(
        "| pass | " + " | ".join(f"{operations} operations, ms" for operations, _ in columns),
        end="",
    )
    print(" |")
    print("|---|" + "---:|" * len(columns))
    for name in PASSES:
        print(f"| {name} | " + " | ".join(f"{times[name]:.1f}" for _, times in columns) + " |")
    print("| all | " + " | ".join(f"{sum(times.values()):.1f}" for _, times in columns) + " |")


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
