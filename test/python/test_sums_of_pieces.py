"""Gradients of several views of one tensor: pieces side by side, with eager's bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from behaviour import run_hot


def loop(x: torch.Tensor) -> torch.Tensor:
    state, total = torch.zeros_like(x[0]), 0
    for i in range(x.shape[0]):
        state = 0.9 * state + x[i]
        total = total + (x[i] * state).sum()
    return total


def all_but_the_first(x: torch.Tensor) -> torch.Tensor:
    return sum((x[i].relu() * i).sum() for i in range(1, x.shape[0]))


def columns(x: torch.Tensor) -> torch.Tensor:
    return (x[:, 0] * x[:, 1] + x[:, 2].abs()).sum() + (x[:, 1] * 0.0).sum()


def parts_of_parts(x: torch.Tensor) -> torch.Tensor:
    return x[0][1:3].exp().sum() + (x[2, :2] * -1.0).sum() + x[0][1:3].sum()


def every_second(x: torch.Tensor) -> torch.Tensor:
    return (x[:, ::2] * x[:, 1::2]).sum()


def that_overlap(x: torch.Tensor) -> torch.Tensor:
    return (x[1:] - x[:-1]).abs().sum() + (x[:, 1:] - x[:, :-1]).abs().sum()


def beside_the_whole(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum() + x[0].sum() + x[1].relu().sum()


def transposed(x: torch.Tensor) -> torch.Tensor:
    return sum((x.t()[i] * i).sum() for i in range(x.shape[1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("fn", [
    loop, all_but_the_first, columns, parts_of_parts, every_second, that_overlap,
    beside_the_whole, transposed,
], ids=lambda fn: fn.__name__)  # fmt: skip
def test_gradients_of_views_are_eagers(
    fn: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(fn(x), x)[0]

    x = torch.randn(20, 34).to(dtype)
    x[0, :2] = torch.tensor([0.0, -0.0])

    actual, expected = run_hot(gradient, x).cpu(), gradient(x)

    assert torch.equal(actual, expected)
    assert torch.equal(actual.signbit(), expected.signbit())


def test_a_loop_over_a_tensor_makes_each_piece_where_it_ends_up() -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(sum((x[i] * x[i]).sum() for i in range(x.shape[0])), x)[0]

    x = torch.randn(16, 64)
    run_hot(gradient, x)
    on_device = x.to("lazy")
    with torch.lazy.profile() as profile:
        gradient(on_device)
        torch.lazy.synchronize()

    steps = {step.name for step in profile.summary.steps}
    assert steps
    assert all(step.startswith("kernel_") for step in steps), steps
