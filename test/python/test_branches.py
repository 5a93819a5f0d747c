"""Random loops that take other branches each time, with views, writes in place, caches that grow
and gradients: they agree with eager while seams part their windows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from behaviour import torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


@dataclass
class State:
    """Matrices of 4 x 4, a sum, and a cache of rows. `total` and `average` are changed in place."""

    x: torch.Tensor
    y: torch.Tensor
    weights: torch.Tensor
    average: torch.Tensor
    total: torch.Tensor
    cache: torch.Tensor


Operation = Callable[[State], None]


def smooth(s: State) -> None:
    s.average.mul_(0.9).add_(s.x.detach(), alpha=0.1)
    s.y = s.y + s.average[1:3].sum()


def write_a_part(s: State) -> None:
    changed = s.y.clone()
    changed[1].mul_(0.9)
    changed[:, 2:] += s.x[:, 2:]
    s.y = torch.sin(changed)


def choose_elements(s: State) -> None:
    s.y = torch.where(s.x > 0, s.y, -s.y.t())


def center(s: State) -> None:
    s.x = s.x - 0.5 * s.x.mean(0, keepdim=True)


def step_forward(s: State) -> None:
    s.x = torch.tanh(s.x @ s.weights) + s.y * 0.5


def shift(s: State) -> None:
    s.x, s.y = s.y.roll(1, 1), s.x.softmax(-1)


def add_up(s: State) -> None:
    s.total += (s.x * s.y).sum()


def attend(s: State) -> None:
    s.cache = torch.cat([s.cache, s.y[:1].detach()])
    s.y = s.y + torch.softmax(s.x @ s.cache.t(), -1) @ s.cache


OPERATIONS = [smooth, write_a_part, choose_elements, center, step_forward, shift, add_up, attend]


@dataclass
class Loop:
    """Rounds of a body, each with one of some branches, and what comes after."""

    body: list[Operation]
    branches: list[list[Operation]]
    after: list[Operation]
    most_rounds: int
    fixed_rounds: bool
    trains: bool

    @staticmethod
    def random(seed: int) -> Loop:
        choose = random.Random(seed)

        def operations(least: int, most: int) -> list[Operation]:
            return choose.choices(OPERATIONS, k=choose.randint(least, most))

        return Loop(
            operations(3, 8),
            [operations(0, 3) for _ in range(choose.randint(2, 3))],
            operations(2, 6),
            choose.randint(4, 8),
            choose.random() < 0.7,
            choose.random() < 0.6,
        )

    def run(self, s: State, choose: random.Random) -> list[torch.Tensor]:
        rounds = self.most_rounds if self.fixed_rounds else choose.randint(1, self.most_rounds)
        for _ in range(rounds):
            for operation in self.body + choose.choice(self.branches):
                operation(s)
        for operation in self.after:
            operation(s)
        results = [s.x, s.y, s.average, s.total]
        loss = s.total + s.x.sum()
        if loss.requires_grad:
            results.append(torch.autograd.grad(loss, s.weights)[0])
        return results


@pytest.mark.parametrize("seed", range(8))
def test_loops_with_branches_agree_with_eager(device, seed):
    loop = Loop.random(seed)

    def run(where: str, number: int) -> list[torch.Tensor]:
        draw = torch.Generator().manual_seed(number)
        x, y, weights = torch.randn(3, 4, 4, generator=draw, dtype=torch.float64).to(where)
        weights = weights.clone().requires_grad_(loop.trains)
        average, total = torch.zeros_like(x), x.new_zeros(())
        cache = torch.zeros(number, 4, dtype=x.dtype, device=where)
        state = State(x, y, weights, average, total, cache)
        return loop.run(state, random.Random(1000 * seed + number))

    torch_lazy.reset_metrics()
    for number in range(24):
        for got, expected in zip(run(device, number), run("cpu", number), strict=True):
            # Of a gradient that is 0 both have what rounding left.
            torch.testing.assert_close(
                got.cpu(), expected, rtol=1e-7, atol=1e-10, check_stride=True
            )
        if number % 3 == 2:
            wait_for_compiles()
    flushes = torch_lazy.metrics()["flushes"]
    parted = sum(flushes.get(seam, 0) for seam in ("branch", "change"))

    assert parted > 0, flushes
    assert torch_lazy.metrics()["deferred"] > 0
