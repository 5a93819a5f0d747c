"""Random programs with collectives among their operations give what they give on the CPU.

Every rank runs one program, drawn from a seed: operations on a few tensors and their views, work
that is waited for later, and values that are read on the way."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

ROWS = 4


class Program:
    """The tensors of a running program, and what its steps do with them."""

    def __init__(self, device: str, seed: int):
        self.random = random.Random(seed)
        scale = 0.5 + dist.get_rank()
        self.tensors = [
            (torch.arange(ROWS * 2.0).view(ROWS, 2) * 0.1 + i).to(device) * scale for i in range(4)
        ]
        self.works: list[tuple[dist.Work, int]] = []
        self.read: list[float] = []

    def pick(self) -> int:
        """A tensor that no work has in its hands."""
        busy = {index for _, index in self.works}
        return self.random.choice([i for i in range(len(self.tensors)) if i not in busy])

    def step(self) -> None:
        """Does one thing to one or two tensors."""
        self.random.choice(STEPS)(self)

    def finish(self) -> list:
        """Waits for everything; all that can be seen of the program."""
        while self.works:
            wait(self)
        return [*self.tensors, torch.tensor(self.read)]


def combine(program: Program) -> None:
    i, j = program.pick(), program.pick()
    program.tensors[i] = (program.tensors[i] * 0.5 + program.tensors[j]).tanh()


def write(program: Program) -> None:
    program.tensors[program.pick()].mul_(0.75).add_(0.125)


def write_part(program: Program) -> None:
    tensor = program.tensors[program.pick()]
    tensor[program.random.randrange(ROWS)].copy_(tensor[0] - 1)


def read(program: Program) -> None:
    program.read.append(program.tensors[program.pick()].sum().item())


def reduce(program: Program) -> None:
    operator = program.random.choice([dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN])
    dist.all_reduce(program.tensors[program.pick()], operator)


def reduce_part(program: Program) -> None:
    first = program.random.randrange(ROWS - 1)
    dist.all_reduce(program.tensors[program.pick()][first : first + 2])


def reduce_later(program: Program) -> None:
    if len(program.works) < 2:
        index = program.pick()
        work = dist.all_reduce(program.tensors[index], async_op=True)
        program.works.append((work, index))


def wait(program: Program) -> None:
    if program.works:
        work, _ = program.works.pop(0)
        work.wait()


def gather(program: Program) -> None:
    tensor = program.tensors[program.pick()]
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    program.tensors[program.pick()] = torch.stack(parts).mean(0)


def broadcast(program: Program) -> None:
    dist.broadcast(program.tensors[program.pick()], src=program.random.randrange(2))


STEPS: list[Callable[[Program], None]] = [
    *[combine, write, write_part] * 3,
    *[reduce, reduce_part, reduce_later, wait, gather, broadcast, read],
]


def run_program(device: str, seed: int) -> list[Tensor]:
    program = Program(device, seed)
    for _ in range(25):
        program.step()
    return program.finish()


@pytest.mark.parametrize("seed", range(12))
def test_random_program(two, device, seed):
    two.same_on(device, run_program, seed)
