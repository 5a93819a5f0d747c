"""Values written where a mask says: a choice by the mask, part of a kernel like any other."""

from __future__ import annotations

import pytest
import torch
from behaviour import library_calls, same, same_on

# What is written, into (4, 5, 6), by a mask of which dimensions.
WRITES = {
    "a number where all dimensions say": (lambda x: 7.0, (0, 3)),
    "a number to rows": (lambda x: 7.0, (0, 1)),
    "a number to columns": (lambda x: 7.0, (2, 3)),
    "a number where two dimensions say": (lambda x: 7.0, (1, 3)),
    "a value of no dimensions": (lambda x: x[0, 0, 0] * 2, (0, 2)),
    "a row to rows": (lambda x: x[0, 0] * 2, (0, 2)),
    "matrices to matrices": (lambda x: x[0] * 2, (0, 1)),
    "one value of as many dimensions": (lambda x: x[:1, :1, :1] * 2, (0, 1)),
    "a column to columns": (lambda x: x[:, :, :1] * 2, (2, 3)),
    "a column to what two dimensions select": (lambda x: x[:, 0, :1] * 2, (1, 3)),
}


def mask_of(x: torch.Tensor, dims: tuple[int, int]) -> torch.Tensor:
    first, end = dims
    others = [d for d in range(x.dim()) if not first <= d < end]
    return x.amax(others) > 1 if others else x > 1


@pytest.mark.parametrize(("value", "dims"), WRITES.values(), ids=WRITES)
def test_a_value_is_written_where_a_mask_selects(device, value, dims):
    given = torch.randn(4, 5, 6)

    def program(where):
        x = given.to(where)
        y = x * 2
        y[(slice(None),) * dims[0] + (mask_of(x, dims),)] = value(x)
        return y + 1

    same_on(device, program)


@pytest.mark.parametrize("dims", [(0, 1), (0, 2), (0, 3)])
def test_a_value_is_added_where_a_mask_selects(device, dims):
    given = torch.randn(4, 5, 6)

    def program(where):
        x = given.to(where)
        y = x * 2
        y.index_put_([mask_of(x, dims)], x[0, 0, 0], accumulate=True)
        return y + 1

    same_on(device, program)


@pytest.mark.parametrize(("value", "dims"), WRITES.values(), ids=WRITES)
@pytest.mark.recording
def test_no_library_call_writes_it(value, dims):
    def write(x):
        y = x * 2
        y[(slice(None),) * dims[0] + (mask_of(x, dims),)] = value(x)
        return y + 1

    assert library_calls(write, torch.randn(4, 5, 6)) == []


def test_values_of_their_own_go_to_what_a_mask_selects(device):
    given = torch.randn(6, 3)

    def program(where):
        x = given.to(where)
        y = x * 2
        mask = torch.tensor([True, False, True, True, False, False]).to(where)
        y[mask] = x[:3] * 5
        return y + 1

    same_on(device, program)


def test_a_mask_that_selects_nothing_writes_nothing(device):
    x = torch.randn(3, 4)
    y = x.to(device)

    for _ in range(4):
        y[y > 100] = 0
        same(y.cpu(), x)


def test_gradients_go_around_what_a_mask_wrote(device):
    given = torch.randn(3, 4)

    def program(where):
        x = given.clone().to(where).requires_grad_()
        y = x * 2
        y[x > 0] = 5
        y.square().sum().backward()
        return x.grad

    same_on(device, program)
