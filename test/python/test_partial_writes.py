"""Writes to parts of values in hot windows: choices by index in kernels, with eager's values."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from behaviour import library_calls, run_hot, synchronize

SHAPES = [(6,), (5, 9), (4, 16), (3, 4, 34), (2, 3, 5, 8), (700, 20)]
DTYPES = [
    torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8,
    torch.uint16, torch.bool, torch.complex64,
]  # fmt: skip
FLOATS = (torch.float32, torch.float64, torch.bfloat16)


def between_kernels(x: torch.Tensor) -> torch.Tensor:
    y = x * 2 + 1
    y[:, :4] *= 3
    y[:, 0] = 0
    return (y + 1).abs()


def on_one_view(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    part = y[:, :4]
    part.mul_(2)
    part.add_(1)
    part.abs_()
    part.sqrt_()
    part.neg_()
    return y + 1


def read_past(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[:, :4] = 0
    total = y[:, 8:12] + 0
    y[:, 4:8] = 1
    return y[:, 8:12] * total + y[:, :4]


def rows_in_turn(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    for i in range(1, len(y)):
        y[i] += 0.5 * y[i - 1]
        y[i].clamp_(-2, 2)
    return torch.stack([y[i] for i in range(1, len(y))])


def read_backwards(x: torch.Tensor) -> torch.Tensor:
    y = x + 3
    y[2500:] += y[2448:4948].flip(0)
    return y.clone()


@pytest.mark.parametrize("function", [between_kernels, on_one_view])
def test_partial_writes_between_kernels_need_no_library(
    function: Callable[..., torch.Tensor],
) -> None:
    x = torch.randn(64, 32)

    assert library_calls(function, x) == []
    torch.testing.assert_close(run_hot(function, x).cpu(), function(x))


def test_views_read_past_partial_writes() -> None:
    x = torch.randn(64, 32)

    torch.testing.assert_close(run_hot(read_past, x).cpu(), read_past(x))


def test_rows_that_are_changed_in_turn_are_never_copied_with_all_others() -> None:
    x = torch.randn(40, 4096)
    torch.lazy.reset_peak_memory_stats()
    before = torch.lazy.memory_allocated()

    result = run_hot(rows_in_turn, x)

    torch.testing.assert_close(result.cpu(), rows_in_turn(x))
    assert torch.lazy.max_memory_allocated() - before < 8 * x.nbytes


def test_a_kernel_that_reads_backwards_does_not_write_where_it_is_yet_to_read() -> None:
    x = torch.arange(5000) % 7

    assert torch.equal(run_hot(read_backwards, x).cpu(), read_backwards(x))


def test_a_library_call_is_given_the_strides_that_eager_gives_it() -> None:
    def written_and_read(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        scaled = x * 2 + 1
        y[:, :6] = scaled
        return torch.pdist(scaled)  # raises for what is not contiguous

    x, y = torch.randn(8, 6), torch.zeros(8, 12)

    torch.testing.assert_close(run_hot(written_and_read, x, y).cpu(), written_and_read(x, y))


def test_a_kernel_leaves_the_smallest_integer_alone_where_a_division_would_trap() -> None:
    def divided(x: torch.Tensor) -> torch.Tensor:
        y = x + 0 * x
        y[:, :8] //= -1
        return y

    x = torch.arange(64).view(4, 16)
    x[0, 12] = torch.iinfo(torch.int64).min

    assert torch.equal(run_hot(divided, x).cpu(), divided(x))


# ---- Random programs ----


def random_view(choose: random.Random, x: torch.Tensor) -> torch.Tensor:
    """Of some elements of each dimension, or of one; sometimes with dimensions in another order."""
    for dim in range(x.dim() - 1, -1, -1):
        size = x.size(dim)
        kind = choose.choice(["all", "all", "slice", "slice", "step", "one"])
        start = choose.randrange(size)
        if kind == "slice":
            x = x.narrow(dim, start, choose.randint(1, size - start))
        elif kind == "step":
            x = x[(slice(None),) * dim + (slice(start, None, choose.choice([2, 3, 4])),)]
        elif kind == "one":
            x = x.select(dim, start)
    return x.transpose(0, -1) if x.dim() > 1 and choose.random() < 0.2 else x


def changed(choose: random.Random, part: torch.Tensor) -> torch.Tensor:
    """What an operator makes of a part, of the part's dtype."""
    if part.dtype is torch.bool:
        return choose.choice([torch.logical_not, lambda v: v & True])(part)
    if part.dtype is torch.uint16:
        return part.clone()
    operators = [lambda v: v * 2, lambda v: v + 1, torch.neg, lambda v: v - v]
    if part.dtype in FLOATS:
        operators += [torch.sigmoid, torch.atan, lambda v: torch.round(v, decimals=1)]
        operators += [lambda v: (v > 0.5).to(v.dtype), lambda v: v / 0]
    elif not part.dtype.is_complex:
        operators += [lambda v: v // 3, lambda v: v % 5, lambda v: (v > 2.5).to(v.dtype)]
    return choose.choice(operators)(part)


def write(choose: random.Random, base: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns the part of the base that is written."""
    place = choose.getrandbits(30)
    part = random_view(random.Random(place), base)
    same_places = random_view(random.Random(place), other)
    kind = choose.choice(["number", "itself", "other", "both", "elsewhere"])
    if kind == "number":
        part.fill_(choose.choice([0, 1, 3]))
    elif kind == "itself":
        part.copy_(changed(choose, part))
    elif kind == "other":
        part.copy_(same_places)
    elif kind == "both" and base.dtype not in (torch.bool, torch.uint16):
        part.copy_(changed(choose, part) + same_places)
    else:
        part.copy_(changed(choose, same_places))
    return part


def random_program(
    seed: int, *, of_inputs: bool = False
) -> Callable[[torch.Tensor, torch.Tensor], list[torch.Tensor]]:
    """Writes to what it makes, or to what was there before its window."""

    def run(x: torch.Tensor, other: torch.Tensor) -> list[torch.Tensor]:
        choose = random.Random(seed)
        narrow = x.dtype in (torch.bool, torch.uint16)
        base = x.clone() if narrow or choose.random() < 0.3 else x * 2 + 1
        seen = [random_view(choose, base) for _ in range(2)] if of_inputs else [base]
        if of_inputs:
            synchronize()
        if base.dim() > 1 and choose.random() < 0.3:
            base, other = base.transpose(0, 1), other.transpose(0, 1)
        results, parts = [], []
        for _ in range(choose.randint(1, 6)):
            parts.append(write(choose, base, other))
            if choose.random() < 0.2:
                part = choose.choice(seen)
                part.copy_(changed(choose, part))
            if choose.random() < 0.2:
                results.append(changed(choose, choose.choice(seen)))
            if choose.random() < 0.2:
                results.append(base.clone())
            if choose.random() < 0.2:
                results.append(changed(choose, random_view(choose, base)))
            if choose.random() < 0.15 and base.dtype in FLOATS:
                results.append(base.cumsum(0))
            if choose.random() < 0.3:
                results.append(changed(choose, random_view(choose, choose.choice(parts))[None]))
        if choose.random() < 0.3:
            results.append(torch.stack([part.reshape(-1)[:1] for part in parts]))
        results.append(base if choose.random() < 0.3 else changed(choose, base))
        return results

    return run


def random_input(choose: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(choose.getrandbits(30))
    values = torch.randn(shape, generator=generator) * 3
    if dtype in FLOATS or dtype.is_complex:
        return values.to(dtype)
    return (values.abs() + 1).to(torch.int64).to(dtype)


@pytest.mark.parametrize("of_inputs", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_that_write_to_parts_agree_with_eager(seed: int, of_inputs: bool) -> None:
    choose = random.Random(seed)
    shape, dtype = choose.choice(SHAPES), choose.choice(DTYPES)
    inputs = [random_input(choose, shape, dtype) for _ in range(2)]
    program = random_program(seed, of_inputs=of_inputs)

    results = run_hot(program, *inputs)

    for got, expected in zip(results, program(*inputs), strict=True):
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got.cpu(), expected, equal_nan=True)
