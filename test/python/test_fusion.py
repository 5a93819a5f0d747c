"""Patterns that a fused kernel reads or writes more than once."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot, same_on, torch_lazy


def test_a_piece_that_two_cats_have_is_in_both(device):
    def program(where):
        x = torch.arange(9.0, device=where).view(3, 3)
        p, q = x.exp(), x.sin()
        a = torch.cat([p, q], 0)
        return torch.cat([a.t(), p], 1)

    same_on(device, program)


def test_halves_that_change_places_meet_in_one_tensor(device):
    def rotated(t, cos, sin):
        a, b = t.chunk(2, -1)
        return t * cos + torch.cat([-b, a], -1) * sin

    def program(where):
        heads = torch.linspace(-1, 1, 96, device=where).view(2, 3, 2, 8).transpose(1, 2)
        angles = torch.linspace(0, 3, 24, device=where).view(3, 8)
        turned = rotated(heads, angles.cos(), angles.sin())
        rows = turned.transpose(1, 2).reshape(2, 3, 16)
        return torch.cat([rows, rows.exp(), heads.transpose(1, 2).reshape(2, 3, 16)], -1)

    same_on(device, program)


@pytest.mark.parametrize("length", [2, 3, 4, 7, 8, 12])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_short_rows_are_as_eager_computes_them(device, length, dtype):
    def program(where):
        x = torch.linspace(-1, 1, 37 * length, device=where).view(37, length).to(dtype)
        rows, columns = torch.arange(37.0, device=where), torch.arange(float(length), device=where)
        scaled = x * columns.to(dtype) + rows.to(dtype)[:, None]
        first = x[:, 0] - x[:, -1]
        x += scaled.softmax(-1)
        return torch.cat([x.sum(-1), x.amax(0), first, (x * scaled).argmax(-1).to(dtype)])

    same_on(device, program)


def test_a_sum_of_columns_and_rows_at_once_has_lanes_along_the_columns(device):
    def program(where):
        x = torch.linspace(-1, 1, 600, device=where).view(200, 3)
        return (x * torch.arange(3.0, device=where)).sum() + x.sum(0)

    same_on(device, program)


def test_a_gradient_that_is_one_number_is_written_beside_the_reduction_that_makes_it(device):
    def program(where):
        x = torch.linspace(-1, 2, 80000, dtype=torch.float64, device=where).view(40000, 2)
        x.requires_grad_()
        mean = (x.mean().sum(0, keepdim=True) * x).mean()
        one = torch.arange(1, dtype=torch.float64, device=where).cos().reshape(())
        return torch.autograd.grad((mean * one).sum(), (x,))

    same_on(device, program)


@pytest.mark.on_cpu("alpha is rounded to half types by the CPU's kernels only")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0.7, -0.3])
def test_a_scaled_sum_of_half_types_is_rounded_once(device, dtype, scale):
    def program(where):
        y = torch.linspace(1, 4, 64, device=where).to(dtype)
        x = (y.float() * -scale).to(dtype)  # what is left of the sum is what rounding left
        return x.add(y, alpha=scale), x.sub(y, alpha=-scale)

    found, expected = hot(lambda: program(device)), program("cpu")

    for actual, wanted in zip(found, expected, strict=True):
        assert torch.equal(actual.cpu(), wanted)


ROW_VALUES = {
    "a gather beside a transposed operand": lambda x, y: (
        x[torch.tensor([3, 0, 5] * 4, device=x.device)] + y[:12, :12].t() * 2
    ),
    "a sum of what is known before its loop": lambda x, y: (
        (x @ y) + x[:, 0, None, None].expand(12, 12, 12).sum(1)
    ),
    "a maximum of it": lambda x, y: (
        (x[:, None, :] * y.t()[None]).sum(-1) + x[:, :, None].expand(12, 12, 12).amax(-1)
    ),
    "rows that are scaled before they are multiplied": lambda x, y: (x * x[:, :1]) @ y,
}


@pytest.mark.parametrize("case", ROW_VALUES)
def test_rows_that_a_kernel_computes_together_have_values_of_their_own(device, case):
    torch_lazy.reset_metrics()

    def program(where):
        x = torch.linspace(-1, 1, 144, device=where).view(12, 12)
        return ROW_VALUES[case](x, x.t() + 1)

    same_on(device, program)

    assert torch_lazy.metrics()["fallbacks"] == {}
