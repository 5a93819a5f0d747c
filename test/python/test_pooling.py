"""Pooling and enlarging in hot windows: by kernels, with eager's values, indices and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from behaviour import EXECUTION_DEVICE, hot, library_calls, run_hot

import torch_lazy

Pool = Callable[[torch.Tensor], "torch.Tensor | Sequence[torch.Tensor]"]


def results(pool: Pool, x: torch.Tensor) -> list[torch.Tensor]:
    """What the pool gives, and the gradient of its first result."""
    x = x.detach().requires_grad_()
    given = pool(x)
    given = [given] if isinstance(given, torch.Tensor) else list(given)
    weights = torch.linspace(-1, 1, given[0].numel(), device=x.device).view(given[0].shape)
    given[0].backward(weights.to(x.dtype))
    return [*(result.detach() for result in given), x.grad]


def check(pool: Pool, x: torch.Tensor) -> None:
    got = run_hot(lambda x: results(pool, x), x)

    for result, expected in zip(got, results(pool, x), strict=True):
        assert result.stride() == expected.stride()
        torch.testing.assert_close(result.cpu(), expected, equal_nan=True)


def library_calls_with_gradient(pool: Pool, x: torch.Tensor) -> list[str]:
    return library_calls(lambda x: results(pool, x), x)


def check_values(pool: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    """Without a gradient, where nothing asks for indices."""
    with torch.no_grad():
        got, expected = run_hot(pool, x), pool(x)

    assert got.stride() == expected.stride()
    torch.testing.assert_close(got.cpu(), expected, equal_nan=True)


WINDOWS = [(2, 2, 0), (2, 1, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0)]


@pytest.mark.parametrize(("kernel", "stride", "padding"), WINDOWS)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_the_greatest_of_windows(kernel, stride, padding, memory_format):
    x = torch.randn(2, 3, 9, 20).to(memory_format=memory_format)

    check(lambda x: F.max_pool2d(x, kernel, stride, padding, return_indices=True), x)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        ((3, 3), (2, 1), (1, 1), 1),
        ((5, 5), (1, 1), (2, 2), 1),
        ((17, 1), (1, 2), (0, 0), 1),
        ((17, 1), None, (8, 0), 1),
        ((1, 18), (2, 1), (0, 9), 1),
        ((2, 3), (1, 2), (1, 0), (2, 3)),
    ],
)
def test_the_greatest_without_indices(kernel, stride, padding, dilation, memory_format):
    x = torch.randn(2, 3, 20, 30).to(memory_format=memory_format)

    check_values(lambda x: F.max_pool2d(x, kernel, stride, padding, dilation), x)
    check_values(lambda x: F.max_pool2d(x[..., 1:24], kernel, stride, padding, dilation), x)
    check_values(lambda x: F.max_pool2d(x[0].half(), kernel, stride, padding, dilation), x)


@pytest.mark.parametrize("kernel", [(1, 5, 5), (3, 1, 7), (2, 2, 2)])
def test_the_greatest_in_three_dimensions(kernel):
    x = torch.randn(2, 6, 15, 21)

    check_values(lambda x: F.max_pool3d(x, kernel, (2, 5, 5)), x)
    check_values(lambda x: F.max_pool3d(x[None].bfloat16(), kernel), x)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_greatest_along_some_dimensions(dims, ceil_mode):
    pool = [F.max_pool1d, F.max_pool2d, F.max_pool3d][dims - 1]

    check(lambda x: pool(x, 3, 2, 1, 1, ceil_mode), torch.randn(2, 3, *(8,) * dims))


def test_equal_numbers_and_nans_are_found_where_eager_finds_them():
    x = torch.randint(3, (2, 3, 12, 18)).float()
    x[0, 0, 3:6] = float("nan")
    x[1, 1, 4:9] = float("-inf")

    for padding in (0, 1):
        check(lambda x, p=padding: F.max_pool2d(x, 3, 2, p, return_indices=True), x)


@pytest.mark.parametrize(("kernel", "stride", "padding"), WINDOWS)
def test_the_mean_of_windows(kernel, stride, padding):
    x = torch.randn(2, 3, 9, 20)
    for ceil_mode, counts_padding in itertools.product([False, True], repeat=2):

        def pool(x, ceil=ceil_mode, counts=counts_padding):
            return F.avg_pool2d(x, kernel, stride, padding, ceil, counts)

        check(pool, x)


def test_the_mean_of_zeros_has_no_sign():
    zeros = torch.full((1, 1, 4, 20), -0.0, device="lazy")

    mean = hot(lambda: F.avg_pool2d(zeros, 2))

    assert not mean.cpu().signbit().any()


def test_the_mean_by_another_divisor_in_other_layouts_and_types():
    x = torch.randn(2, 3, 9, 20)

    for like in (x.to(memory_format=torch.channels_last), x[0], x.bfloat16(), x.double()):
        check(lambda x: F.avg_pool2d(x, (2, 3), (1, 2), (1, 0), divisor_override=5), like)


@pytest.mark.parametrize("size", [1, 4, 5])
def test_the_mean_of_parts(size):
    check(lambda x: F.adaptive_avg_pool2d(x, size), torch.randn(2, 3, 12, 20))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("factor", [2, 3, 7])
def test_enlarging_by_whole_factors(factor, mode):
    x = torch.randn(2, 3, 5, 7)

    check(lambda x: F.interpolate(x, scale_factor=factor, mode=mode), x)


def test_a_convolutional_block_pools_in_kernels():
    x = torch.randn(2, 8, 16, 16)

    assert library_calls_with_gradient(lambda x: F.max_pool2d(F.relu(x), 2), x) == []
    assert library_calls_with_gradient(lambda x: F.avg_pool2d(F.relu(x), 3, 1, 1), x) == []
    assert library_calls_with_gradient(lambda x: F.interpolate(F.relu(x), scale_factor=2), x) == []


def test_indices_that_come_from_elsewhere_may_lie_outside_of_their_windows():
    x, indices = torch.randn(1, 1, 4, 4), torch.tensor([[[[15, 0], [3, 9]]]])

    def backward(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        grad = torch.ones(1, 1, 2, 2, device=x.device)
        return torch.ops.aten.max_pool2d_with_indices_backward(
            grad, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
        )

    on_device = hot(backward, x.to("lazy"), indices.to("lazy"))

    assert torch.equal(on_device.cpu(), backward(x, indices))


@pytest.mark.skipif(EXECUTION_DEVICE != "cpu", reason="eager has such an operator on the CPU alone")
def test_pooling_along_one_dimension_without_a_gradient_is_one_operation():
    x = torch.randn(2, 3, 20, device="lazy")
    before = torch_lazy.metrics()["recorded"]

    with torch.no_grad():
        F.max_pool1d(x, 2)

    assert torch_lazy.metrics()["recorded"] == before + 1


def test_a_traced_module_pools_along_one_dimension():
    x = torch.randn(2, 3, 20, device="lazy")

    with torch.no_grad():
        traced = torch.jit.trace(lambda x: F.max_pool1d(x, 2), x)

    assert torch.equal(traced(x + 1).cpu(), F.max_pool1d((x + 1).cpu(), 2))
