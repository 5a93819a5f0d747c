"""Cumulative sums and products in kernels, with eager's values."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from behaviour import library_calls, run_hot

SHAPES = [(1,), (5,), (40,), (3000,), (7, 5), (3, 1300), (900, 3), (4, 1, 9), (6, 33, 20)]
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]
TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def elements(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        return (torch.rand(shape) * 0.4 + 0.8).to(dtype)
    return torch.randint(0, 3, shape).to(dtype)


def assert_agree(actual: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = TOLERANCES.get(expected.dtype, 0)
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
@pytest.mark.parametrize("scan", [torch.cumsum, torch.cumprod], ids=["sum", "prod"])
def test_scans_along_each_dimension_agree_with_eager(
    scan: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    fallbacks = torch.lazy.metrics()["fallbacks"]

    for shape in SHAPES:
        for dim in range(-1, len(shape) - 1):
            x = elements(shape, dtype)
            assert_agree(run_hot(lambda x, dim=dim: scan(x, dim), x), scan(x, dim))

    assert torch.lazy.metrics()["fallbacks"] == fallbacks


def test_what_is_before_and_behind_a_scan_is_in_its_kernel() -> None:
    def nucleus(logits: torch.Tensor) -> torch.Tensor:
        p = logits.softmax(-1)
        return torch.where(p.cumsum(-1) - p < 0.9, p, 0.0).sum(-1)

    def returns(rewards: torch.Tensor) -> torch.Tensor:
        discounts = torch.full_like(rewards, 0.99).cumprod(0)
        return (rewards * discounts).cumsum(0) / discounts

    for fn, x in [(nucleus, torch.randn(9, 50)), (returns, torch.randn(64, 20))]:
        assert library_calls(fn, x) == []
        torch.testing.assert_close(run_hot(fn, x).cpu(), fn(x))


def test_a_scan_in_place_over_a_part() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 2:7].cumsum_(1)
        y[3].cumsum_(0)
        return y + 1

    x = torch.randn(6, 12)
    torch.testing.assert_close(run_hot(run, x).cpu(), run(x))


def test_a_scan_with_a_dtype_casts_first() -> None:
    x = torch.tensor([1.7, 2.9, -0.5, 300.0])
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float64):
        expected = torch.cumsum(x, 0, dtype=dtype)
        assert torch.equal(
            run_hot(lambda x, dtype=dtype: torch.cumsum(x, 0, dtype=dtype), x).cpu(), expected
        )


def test_scans_pass_nan_and_infinity_on() -> None:
    x = torch.ones(3, 40)
    x[0, 7], x[1, 3], x[2, 2], x[2, 30] = float("nan"), float("inf"), -0.0, -float("inf")

    for scan in (torch.cumsum, torch.cumprod):
        actual = run_hot(lambda x, scan=scan: scan(x, 1), x).cpu()
        torch.testing.assert_close(actual, scan(x, 1), equal_nan=True)


def test_products_of_rows_stay_in_the_range_of_floats_where_eagers_do() -> None:
    begins_at_zero, falls, alternates = torch.full((3, 64), 1e20)
    begins_at_zero[0] = 0
    falls[:32] = 1e-30
    alternates[1::2] = 1e-20

    for dtype in (torch.float32, torch.float64):
        for row in (begins_at_zero, falls, alternates):
            x = (row.double() ** (1 if dtype == torch.float32 else 8)).to(dtype)
            torch.testing.assert_close(
                run_hot(lambda x: x.cumprod(0), x).cpu(), x.cumprod(0), equal_nan=True
            )


def test_sums_of_rows_stay_in_the_range_of_floats_where_eagers_do() -> None:
    terms = [1e308, -1e308] * 8 + [-1e308, 1e308, 1e308, -1e308] * 4
    x = torch.tensor(terms, dtype=torch.float64)

    assert torch.equal(run_hot(lambda x: x.cumsum(0), x).cpu(), x.cumsum(0))


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32, torch.float64], ids=str)
def test_a_scan_that_is_reduced_and_read_again(dtype: torch.dtype) -> None:
    def from_greatest(x: torch.Tensor) -> torch.Tensor:
        sums = x.cumsum(1, dtype=dtype)
        return sums - sums.amax(1, keepdim=True)

    def of_equal_columns(x: torch.Tensor) -> torch.Tensor:
        sums = x[:, :1].expand(20, 100).cumsum(0, dtype=dtype)
        return sums - sums.amax(0)

    x = elements((20, 100), torch.int16 if dtype == torch.int16 else dtype)
    for fn in (from_greatest, of_equal_columns):
        assert library_calls(fn, x) == []
        torch.testing.assert_close(run_hot(fn, x).cpu(), fn(x))


def random_program(seed: int) -> tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]:
    shape = random.Random(seed).choice([s for s in SHAPES if len(s) > 1])

    def run(x: torch.Tensor) -> torch.Tensor:
        choose = random.Random(seed + 1)
        for _ in range(choose.randint(2, 5)):
            dim = choose.randrange(x.dim())
            kind = choose.randrange(8)
            if kind < 3:
                x = x.cumsum(dim) * 0.1
            elif kind == 3:
                x = (x * 0.01 + 1).cumprod(dim)
            elif kind == 4:
                x = x - x.amax(dim, keepdim=True)
            elif kind == 5:
                x = x.flip(dim).cumsum(dim).flip(dim) * 0.1
            elif kind == 6:
                x = x.transpose(0, -1).relu() + 0.5
            else:
                x = torch.where(x > x.mean(dim, keepdim=True), x, x.roll(1, dim))
        return x

    return run, torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_with_scans_agree_with_eager(seed: int) -> None:
    run, x = random_program(seed)
    torch.testing.assert_close(run_hot(run, x).cpu(), run(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_scans_agree_with_eager(dim: int) -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        loss = (x.cumsum(dim).tanh() * x.cumprod(dim)).sum()
        return torch.autograd.grad(loss, x)[0]

    x = elements((12, 9), torch.float64)
    torch.testing.assert_close(run_hot(gradient, x).cpu(), gradient(x))


@pytest.mark.parametrize(("shape", "dim", "left"), [
    ((40,), 0, []),
    ((7, 5), 1, []),
    ((2000, 6), 1, []),
    ((2000, 20), 0, []),
    ((60, 300), 1, []),
    ((2000, 20), 1, ["aten::cumsum"]),
    ((50, 30, 3), 1, ["aten::cumsum"]),
])  # fmt: skip
def test_scans_that_fill_too_few_vectors_are_the_librarys(
    shape: tuple[int, ...], dim: int, left: list[str]
) -> None:
    assert library_calls(lambda x: x.cumsum(dim), torch.randn(shape)) == left
