"""What is joined from pieces of other values in hot windows: by kernels, with eager's values."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from behaviour import library_calls, run_hot

import torch_lazy


def life(cells: torch.Tensor) -> torch.Tensor:
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(cells.roll(shift, (0, 1)) for shift in shifts)
    return ((neighbours == 3) | ((neighbours == 2) & (cells == 1))).int()


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def shifted(x: torch.Tensor) -> torch.Tensor:
    return x - F.pad(x, (0, 0, 1, -1))


def mirrored(x: torch.Tensor) -> torch.Tensor:
    return x - x.flip(-1) * 2 + x.exp().flip(0, 1)


def both_ends(x: torch.Tensor) -> torch.Tensor:
    return F.pad(x.flip(0), (1, 1)) + 1


def tiled(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return (x.repeat(1, 2) + torch.tile(bias, (len(x), 1))).relu()


CASES = {
    "rolls": (life, (torch.arange(70 * 33).view(70, 33) * 7919 % 10 < 3).int()),
    "halves": (rotary, torch.randn(3, 5, 64), torch.randn(64), torch.randn(64)),
    "padding": (shifted, torch.randn(4, 20, 32)),
    "flips": (mirrored, torch.randn(5, 150)),
    "flips in low precision": (mirrored, torch.randn(3, 160).bfloat16()),
    "flips of views": (lambda x: mirrored(x[1:, ::2].mT), torch.randn(300, 70)),
    "a flip that is padded": (both_ends, torch.randn(6, 140)),
    "repeats": (tiled, torch.randn(5, 20), torch.randn(40)),
    "low precision": (shifted, torch.randn(4, 20, 32).bfloat16()),
    "nan": (shifted, torch.full((2, 8, 16), torch.nan)),
}


@pytest.mark.parametrize("case", CASES)
def test_pieces_are_read_where_they_lie(case: str) -> None:
    function, *inputs = CASES[case]

    result = run_hot(function, *inputs)

    torch.testing.assert_close(result.cpu(), function(*inputs), equal_nan=True)


@pytest.mark.kernels
@pytest.mark.parametrize("case", ["rolls", "padding", "flips", "repeats"])
def test_no_library_call_joins_them(case: str) -> None:
    function, *inputs = CASES[case]

    assert library_calls(lambda x: x.sort(0)[0] + 1, torch.ones(20, 30)) == ["aten::sort"]
    assert library_calls(function, *inputs) == []


def test_a_value_is_written_after_its_pieces_were_read() -> None:
    def advance(x: torch.Tensor) -> torch.Tensor:
        state = x.clone()
        for _ in range(3):
            state.add_(state.roll(1, 1))
            state[:, 5:] = state[:, :-5] * 2
        return state

    x = torch.randn(6, 40)

    assert torch.equal(run_hot(advance, x).cpu(), advance(x))


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_a_value_is_flipped_in_its_own_memory(dims: tuple[int, ...]) -> None:
    def advance(x: torch.Tensor) -> torch.Tensor:
        state = x.clone()
        return state.copy_(state.flip(dims) * 2)

    x = torch.randn(6, 140)

    assert torch.equal(run_hot(advance, x).cpu(), advance(x))


@pytest.mark.parametrize("dim", [0, -1])
def test_a_number_has_nothing_to_flip(dim: int) -> None:
    flipped = run_hot(lambda x: (x * 2).flip(dim) + 1, torch.tensor(3.0))

    assert flipped.item() == 7


def test_the_gradient_of_a_flip_is_flipped() -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        leaf = x.detach().requires_grad_()
        (leaf * leaf.flip(0).exp()).sum().backward()
        return leaf.grad

    x = torch.randn(5, 133)

    torch.testing.assert_close(run_hot(gradient, x).cpu(), gradient(x))


def random_program(seed: int, shape: tuple[int, ...]) -> str:
    """Rolls, pads, cats, slices and writes of each other's results, as source."""
    choose = random.Random(seed)
    lines, sizes = [], {"x": list(shape)}
    for number in range(choose.randint(3, 8)):
        source = choose.choice(list(sizes)[-3:])
        size = list(sizes[source])
        dim = choose.randrange(len(size))
        cut = choose.randint(1, max(1, size[dim] - 1))
        made = f"v{number}"
        kind = choose.choice(
            ["roll", "rolls", "pad", "cat", "rotate", "pointwise", "write", "flip", "mirror"]
        )
        if kind == "roll":
            code = f"{source}.roll({choose.randint(-5, 5)}, {dim})"
        elif kind == "rolls":
            code = f"{source}.roll(({choose.randint(-5, 5)}, 2), (0, -1))"
        elif kind == "pad":
            before, after = choose.randint(-1, 3), choose.randint(0, 3)
            size[-1] += before + after
            code = f"F.pad({source}, ({before}, {after}), value=1)"
        elif kind == "cat":
            size[dim] *= 2
            code = f"torch.cat(({source}, {source} * 2), {dim})"
        elif kind == "rotate":
            rest = size[dim] - cut
            code = f"torch.cat(({source}.narrow({dim}, {cut}, {rest}), "
            code += f"-{source}.narrow({dim}, 0, {cut})), {dim})"
        elif kind == "flip":
            code = f"{source}.flip({dim})"
        elif kind == "mirror":
            code = f"{source} - {source}.flip({tuple(range(len(size)))})"
        elif kind == "pointwise":
            code = f"{source} * 3 - {source}.roll(1, {dim})"
        else:
            lines.append(f"{source}.copy_({source}.roll({cut}, {dim}))")
            continue
        lines.append(f"{made} = {code}")
        sizes[made] = size
    kept = [name for name in sizes if choose.random() < 0.5] or [list(sizes)[-1]]
    results = ", ".join(f"{name}.flatten()" for name in kept)
    body = "\n    ".join([*lines, f"return torch.cat(({results},))"])
    return f"def program(x):\n    {body}\n"


# From the sizes of an input to those of the memory it lies in, and from that to the input.
LAYOUTS: list[tuple[Callable[..., tuple[int, ...]], Callable[[torch.Tensor], torch.Tensor]]] = [
    (lambda size: size, lambda memory: memory),
    (lambda size: (size[0] + 1, *size[1:]), lambda memory: memory[1:]),
    (lambda size: size[::-1], lambda memory: memory.permute(*range(memory.dim())[::-1])),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_joins_are_those_of_eager(seed: int) -> None:
    shape = random.Random(seed).choice(
        [(40,), (7, 33), (5, 4, 32), (3, 164), (64, 64), (17, 16), (300,)]
    )
    source = random_program(seed, shape)
    names = {"torch": torch, "F": F}
    exec(source, names)
    program = names["program"]
    dtype = random.Random(seed).choice([torch.float32, torch.float64, torch.int64, torch.bfloat16])

    def run(memory: torch.Tensor) -> torch.Tensor:
        """The results, and what became of the memory in which the input is a view."""
        memory = memory.clone()
        return torch.cat((program(view(memory)), memory.flatten()))

    in_memory, view = LAYOUTS[seed % len(LAYOUTS)]
    size = torch.Size(in_memory(shape))
    memory = (torch.arange(size.numel()) % 7).to(dtype).view(size)

    result = run_hot(run, memory)

    assert torch.equal(result.cpu(), run(memory)), source


def test_what_is_padded_is_read_before_its_source_is_written():
    x = torch.randn(6, 40)

    def smooth(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        for _ in range(2):
            padded = F.pad(x, (1, 1, 1, 1))
            x.copy_(padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:])
        return x

    assert torch.equal(run_hot(smooth, x).cpu(), smooth(x))


def test_a_written_input_is_read_padded_before_the_write():
    def shift(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (1, 1), value=2.0)
        x.copy_(padded[:, 2:] - padded[:, :-2])
        return x

    x = torch.randn(6, 40)
    on_device = x.to("lazy")
    for _ in range(8):
        shift(on_device)
        torch_lazy.synchronize()
        torch_lazy.wait_for_compiles()
        shift(x)

    torch.testing.assert_close(on_device.cpu(), x)


def test_a_padded_value_of_many_views_is_written_once():
    weights = torch.randn(11, 11)

    def stencil(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (5, 5, 5, 5))
        shifted = [
            padded[i : i + 20, j : j + 30] * weights[i, j].item()
            for i in range(11)
            for j in range(11)
        ]
        return sum(shifted[1:], shifted[0])

    x = torch.randn(20, 30)

    torch.testing.assert_close(run_hot(stencil, x).cpu(), stencil(x), rtol=1e-4, atol=1e-4)
